# How to run this image: docs/deploying.md. Everything it installs is named in requirements*.lock, with hashes.

FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /src
COPY requirements.lock requirements-build.lock ./
RUN python -m venv /build \
 && /build/bin/pip install --quiet --require-hashes --only-binary=:all: -r requirements-build.lock \
 && python -m venv /opt/job-watchdog \
 && /opt/job-watchdog/bin/pip install --quiet --require-hashes --only-binary=:all: -r requirements.lock
COPY pyproject.toml README.md LICENSE ./
COPY watchdog watchdog
RUN /build/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /wheel . \
 && /opt/job-watchdog/bin/pip install --quiet --no-deps --no-index /wheel/*.whl \
 && /opt/job-watchdog/bin/pip uninstall --quiet --yes pip setuptools \
 && /opt/job-watchdog/bin/python -m compileall -q /opt/job-watchdog

FROM python:3.11-slim-bookworm
LABEL org.opencontainers.image.title="job-watchdog" \
      org.opencontainers.image.description="Watches long GPU training jobs and tells people when they hang, idle, crash or end" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 job-watchdog \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/job-watchdog --shell /usr/sbin/nologin job-watchdog \
 && install -d -o 10001 -g 10001 -m 0700 /var/lib/job-watchdog \
 && install -d -m 0755 /etc/job-watchdog
COPY --from=build /opt/job-watchdog /opt/job-watchdog
ENV PATH=/opt/job-watchdog/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 OPENBLAS_NUM_THREADS=1 \
    JOB_WATCHDOG_RULES=/etc/job-watchdog/rules.yaml \
    JOB_WATCHDOG_STATE=/var/lib/job-watchdog/state.db
USER 10001:10001
WORKDIR /var/lib/job-watchdog
VOLUME /var/lib/job-watchdog
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=60s --timeout=15s --start-period=60s --retries=3 CMD ["watchdog", "status", "--quiet"]
ENTRYPOINT ["watchdog"]
CMD ["run"]
