import pytest
from hypothesis import given
from hypothesis import strategies as st

from watchdog.core.masking import MASK, mask, mask_all

HEX40 = "0123456789abcdef0123456789abcdef01234567"


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("Authorization: Bearer eyJhbGciOiJI.abc.def rest", "Authorization: Bearer **** rest"),
        ('{"Authorization": "Basic dXNlcjpwYXNz", "x": 1}', '{"Authorization": "Basic ****", "x": 1}'),
        ("using bearer abcdef0123456789 now", "using bearer **** now"),
        ("AK=AKLTexample SK=s3cr3t done", "AK=**** SK=**** done"),
        ("ak: 'abcdefgh', sk: 'ijklmnop'", "ak: '****', sk: '****'"),
        ("cloning https://user:pw@host/repo.git", "cloning https://user:****@host/repo.git"),
        ("https://user:p@ss@host/x", "https://user:****@host/x"),
        ("redis://:p4ss@10.0.0.1:6379/0", "redis://:****@10.0.0.1:6379/0"),
        ("https://0123456789abcdef0123456@github.com/x", "https://****@github.com/x"),
        ("login with hf_abcdEFGH1234567890 ok", "login with hf_**** ok"),
        ("key sk-proj-abc123def456ghi789jkl!", "key sk-****!"),
        ("ghp_abcdefghij0123456789", "ghp_****"),
        ("github_pat_11ABCDEFG_abcdefghij", "github_pat_****"),
        ("id AKIAIOSFODNN7EXAMPLE", "id AKIA****"),
        ("xoxb-123456789012-abcdef", "xoxb-****"),
        ("jwt eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln end", "jwt eyJ**** end"),
        ("export FOO_KEY=abcd1234", "export FOO_KEY=****"),
        (f'export WANDB_API_KEY="{HEX40}"', 'export WANDB_API_KEY="****"'),
        (f"wandb login --relogin {HEX40}", "wandb login --relogin ****"),
        (f"wandb: your api key is {HEX40}.", "wandb: your api key is ****."),
        ("password=hunter2", "password=****"),
        ("passwd : 1234", "passwd : ****"),
        ('{"password": "a b c", "lr": 0.1}', '{"password": "****", "lr": 0.1}'),
        (r"{\"password\": \"abc\", \"lr\": 0.1}", r"{\"password\": \"****\", \"lr\": 0.1}"),
        (
            "Config(password='abc', api_key=b'xyzxyz', lr=0.1)",
            "Config(password='****', api_key=b'****', lr=0.1)",
        ),
        ("token: abcd1234efgh", "token: ****"),
        ("'token': 'abcd1234efgh'", "'token': '****'"),
        ("GET /x?access_token=abc123&page=2 HTTP", "GET /x?access_token=****&page=2 HTTP"),
        ("https://x/y?X-Amz-Signature=abc&X-Amz-Date=1", "https://x/y?X-Amz-Signature=****&X-Amz-Date=1"),
        ("run.py --password hunter2 --lr 0.1", "run.py --password **** --lr 0.1"),
        ("run.py --hub-token abc --api-key=abcdef", "run.py --hub-token **** --api-key=****"),
        ("accessKeySecret: 0aBcDeFgHiJk", "accessKeySecret: ****"),
        ("aws_secret_access_key=wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key=****"),
        ("密码：abc123 密钥: zzz", "密码：**** 密钥: ****"),
        ("Set-Cookie: session=abc; Path=/", "Set-Cookie: ****"),
        ("POST https://hooks.slack.com/services/T0/B0/XX", "POST https://hooks.slack.com/services/****"),
        (
            "https://open.feishu.cn/open-apis/bot/v2/hook/1-2 ok",
            "https://open.feishu.cn/open-apis/bot/v2/hook/**** ok",
        ),
        (
            "-----BEGIN RSA PRIVATE KEY-----\\nMIIE\\n-----END RSA PRIVATE KEY----- x",
            "-----BEGIN RSA PRIVATE KEY-----****-----END RSA PRIVATE KEY----- x",
        ),
        ("[rank0]: " + "aB3/" * 16, "[rank0]: ****"),
    ],
)
def test_secrets_are_masked_and_the_rest_stays(line: str, masked: str) -> None:
    assert mask(line) == masked


@pytest.mark.parametrize(
    "line",
    [
        "step 100 | tokens: 12345 | token/s: 8192.5 | loss 2.0 | lr 3.0e-04",
        " iteration   20453/  115311 | consumed samples:  41887744 | lm loss: 1.98 |",
        "max_token=4096 pad_token=<pad> eos_token: </s> bos_token='[BOS]' token_id=50256",
        "tokenizer: meta-llama/Llama-2-7b num_tokens=41887744",
        "next token: international",
        'loss_per_token = F.cross_entropy(logits.view(-1, 8), reduction="none")',
        "commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "PWD=/root/x GOOGLE_APPLICATION_CREDENTIALS=/secrets/sa.json",
        "primary_key: id sort key: name",
        "password: None token=null secret=${FOO}",
        "KeyError: 'packed_input_len'",
        "the disk-abcdefghijklmnopqrstuvwxyz12345 is full; sk-learn-pipeline-configuration",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
        "node7:311:882 [3] NCCL WARN NET/IB : Got completion from peer 10.1.2.3<50731> with status=12",
        "https://huggingface.co/org/model/resolve/main/model.safetensors",
        "/data/" + "checkpoints/" * 8,
        "=" * 80,
        "A" * 80,
    ],
)
def test_ordinary_training_lines_stay_untouched(line: str) -> None:
    assert mask(line) == line


def test_of_a_private_key_block_nothing_remains() -> None:
    lines = [
        "before",
        "-----BEGIN OPENSSH PRIVATE KEY-----",
        "b3Blb",
        "c2g",
        "-----END OPENSSH PRIVATE KEY-----",
        "after",
    ]

    assert mask_all(lines) == ["before", lines[1], MASK, MASK, lines[4], "after"]


def test_a_key_block_in_one_line_does_not_hide_the_following_ones() -> None:
    line = "-----BEGIN PRIVATE KEY-----abc-----END PRIVATE KEY-----"

    assert mask_all([line, "after"])[1] == "after"


def test_a_certificate_is_no_key() -> None:
    lines = ["-----BEGIN CERTIFICATE-----", "x", "-----END CERTIFICATE-----", "y"]

    assert mask_all(lines) == lines


WORDS = [
    "password",
    "token",
    "=",
    ":",
    " ",
    '"',
    "'",
    "\\",
    "abc123def456",
    "Bearer",
    "Authorization",
    "://",
    "@",
    "user",
    "hf_abcdefgh1234",
    "****",
    "KEY",
    "_KEY",
    "--",
    "&",
    "?",
    "-----BEGIN PRIVATE KEY-----",
    "-----END",
    "sk-",
    "AK",
]


@given(st.lists(st.sampled_from(WORDS), max_size=14).map("".join))
def test_masking_twice_is_masking_once(line: str) -> None:
    assert mask(mask(line)) == mask(line)


@given(
    st.sampled_from(
        [
            "password={}",
            "token: {}",
            '{{"api_key": "{}"}}',
            "https://u:{}@h/",
            "export A_TOKEN={}",
            "--token {}",
        ]
    ),
    st.text("abcdefghXYZ0123456789", min_size=10, max_size=30).filter(
        lambda s: not s.isdigit() and not s.isalpha()
    ),
)
def test_a_planted_secret_never_survives(form: str, secret: str) -> None:
    assert secret not in mask("step 5: " + form.format(secret) + " loss 1.0")


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "token",
        "password=",
        "token =",
        "://",
        "://a:",
        "eyJ",
        "sk-",
        "sk-a",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN ",
        "authorization: ",
        "bearer ",
        "cookie:",
        "?a",
        "&a_",
        "--a-",
        "--",
        "key ",
        "key is ",
        "A_KEY=",
        "ak=",
        "hf_",
        "hf_a",
        '\\"',
        'password="',
        "api_",
        "secret_",
        "bot123456:",
        "AKIA",
        " ",
        "=",
        "login wandb ",
        "hooks.slack.com/services/",
        "token=1,1,",
        "github_pat_",
        "密码",
    ],
)
@pytest.mark.timeout(20)
def test_hostile_lines_of_a_megabyte_take_linear_time(piece: str) -> None:
    # A pattern that is not linear needs minutes here, not milliseconds.
    mask(piece * (1_000_000 // len(piece)))
    mask(piece + "x" * 200_000)
    mask(piece + " " * 200_000)
    mask(piece + "," * 200_000 + "x")
