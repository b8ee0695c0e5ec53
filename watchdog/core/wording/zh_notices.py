"""What the watchdog says about itself, in Chinese; see `en_notices` for what the braces are."""

from collections.abc import Mapping

from watchdog.core.alerts import NoticeKind
from watchdog.core.wording.shape import NoticeText

NOTICES: Mapping[NoticeKind, NoticeText] = {
    NoticeKind.SOURCE_BLIND: NoticeText(
        title=(
            "无法读取 {task} 的{capability}（{source}）：{failure}",
            "无法读取 {source} 的{capability}：{failure}",
            "无法读取 {subject}",
        ),
        body=(
            "自 {since} 起（已 {duration}），{source} 的{capability}无法读取：{failure}。",
            "返回内容：{detail}",
            "涉及任务：{task}。",
            "恢复读取之前，依赖它的告警既不会触发，也不会判为恢复。",
        ),
        over_title=(
            "{task} 的{capability}（{source}）已可读取",
            "{source} 的{capability}已可读取",
            "{subject} 已可读取",
        ),
        over_body=(
            "{since} 至 {until}（{duration}）期间无法读取：{failure}。",
            "暂停判断的告警已恢复判断。",
        ),
    ),
    NoticeKind.NOT_WATCHING: NoticeText(
        title=("{from} 至 {to} 期间未在监控", "有 {gap} 未在监控", "有一段时间未在监控"),
        body=(
            "{from} 至 {to}（{gap}）期间没有做任何判断。",
            "原因：{reason}",
            "其间发生又结束的情况可能未被发现。",
            "日志会从上次读到的位置继续读取。",
        ),
    ),
    NoticeKind.CLOCK_JUMPED: NoticeText(
        title=("系统时钟跳变了 {by}", "系统时钟发生跳变"),
        body=(
            "本机时钟从 {from} 变为 {to}。",
            "不会因此触发或结束任何告警。",
            "如果本机在此期间休眠，则有 {gap} 未作任何检查，期间发生又结束的情况可能未被发现。",
        ),
    ),
    NoticeKind.CHANNEL_BROKEN: NoticeText(
        title=("通知渠道 {channel} 无法送达", "通知渠道 {subject} 无法送达"),
        body=(
            "已连续失败 {failures} 次。",
            "至今已放弃 {lost} 条消息；之后放弃的只计数，不再逐条通知。",
            "最近一次返回：{answer}",
            "{failures:.0}消息会保留并继续重试。",
        ),
        over_title=("通知渠道 {channel} 已恢复", "通知渠道 {subject} 已恢复"),
        over_body=(
            "{since} 至 {until}（{duration}）期间无法送达。",
            "已放弃 {lost} 条消息；`watchdog history` 可查看相关事件。",
            "{failures:.0}积压的消息正在补发。",
        ),
    ),
    NoticeKind.UNDELIVERED: NoticeText(
        title=(
            "渠道 {channel} 已移除，尚有 {messages} 条消息未送达",
            "渠道 {channel} 未收到 {rule} · {task} 的消息",
            "渠道 {channel} 未收到 {rule} 的消息",
            "有一条消息未能送达",
        ),
        body=(
            "关于事件 {incident} 的消息在尝试 {attempts} 次后放弃。",
            "涉及事件：{incidents}；详情见 `watchdog why`。",
            "最近一次返回：{answer}",
            "{answer:.0}请检查该渠道的地址和权限；`watchdog check --probe` 可以测试。",
        ),
    ),
    NoticeKind.STATE_NOT_STORED: NoticeText(
        title=("无法保存状态",),
        body=(
            "写入状态文件失败：{detail}",
            "监控和通知仍在内存中继续；如果此时重启，消息可能会重复。",
        ),
        over_title=("状态已可正常保存",),
        over_body=("{since} 至 {until}（{duration}）期间无法保存。",),
    ),
    NoticeKind.LOG_LAG: NoticeText(
        title=("{task} 的日志读取滞后", "日志读取滞后：{subject}"),
        body=("比最新日志落后 {lag}。", "日志不会丢失，但通知会延迟。"),
        over_title=("{task} 的日志读取已跟上", "日志读取已跟上：{subject}"),
        over_body=("{since} 至 {until}（{duration}）期间滞后。",),
    ),
    NoticeKind.LOG_UNREAD: NoticeText(
        title=("{task} 有日志未读取", "有日志未读取：{subject}"),
        body=(
            "{from} 至 {to} 的日志没有读取。",
            "{first} 至 {last} 之间有 {stretches} 段日志没有读取。",
            "只读取了包含“{contains}”的行。",
            "原因：{reason}",
            "未读部分中的错误不会被发现。",
        ),
        over_title=("{task} 的日志已恢复完整读取", "日志已恢复完整读取：{subject}"),
        over_body=("{since} 至 {until}（{duration}）期间有日志未读取。",),
    ),
    NoticeKind.NO_LOG_LINE: NoticeText(
        title=("从未读到 {task} 的日志", "从未读到日志：{subject}"),
        body=(
            "数据源有应答，但没有任何日志行，日志规则在此不起作用。",
            "请检查任务 ID、命名空间，以及程序是否写标准输出。",
        ),
        over_title=("已读到 {task} 的日志", "已读到日志：{subject}"),
        over_body=("第一行出现于 {until}。",),
    ),
    NoticeKind.FIRST_READ: NoticeText(
        title=("从现在起读取 {task} 的日志", "从现在起读取日志：{subject}"),
        body=("此前匹配的 {count} 行未通知。", "只通知 {from} 之后的日志。"),
    ),
    NoticeKind.RULE_THIN: NoticeText(
        title=("规则 {rule} 在 {task} 上无法判断", "规则 {rule} 无法判断：{subject}"),
        body=(
            "数据源有应答，但{lacking}。",
            "可以把窗口加长到 {window} 以上，或降低 `coverage`。",
            "可能是 {metric} 拼写有误，或该任务不提供此指标。",
            "`watchdog check --probe` 会显示实际数据情况。",
        ),
        over_title=("规则 {rule} 在 {task} 上已可判断", "规则 {rule} 已可判断：{subject}"),
        over_body=("{since} 至 {until}（{duration}）期间无法判断。",),
    ),
    NoticeKind.RULE_SLOW: NoticeText(
        title=("规则 {rule} 的判断耗时超过间隔", "{source} 的应答跟不上读取间隔"),
        body=(
            "判断一次耗时 {took}，而全部规则应每 {interval} 判断一次。",
            "{rule:.0}期间会跳过部分判断，所有规则的告警都会延迟。",
            "{rule:.0}可以加长 `interval`，或用 `select` 减少涉及的任务。",
            "向 {source} 读取一次{capability}耗时超过 {poll}，而每 {poll} 就要读取一次。",
            "{poll:.0}依赖这些数据的判断和告警会延迟。",
            "{poll:.0}如果持续如此，请加长 {source} 的 `poll`，或检查两端之间的网络。",
        ),
        over_title=("规则 {rule} 已恢复按时判断", "{source} 的应答已跟上读取间隔"),
        over_body=("{since} 至 {until}（{duration}）期间未能按时完成。",),
    ),
    NoticeKind.SUSPECT_VALUES: NoticeText(
        title=("{task} 的 {metric} 数值可疑", "数值可疑：{subject}"),
        body=("数据源情况：{remark}", "数值按原样使用，未做换算。"),
        over_title=("{task} 的 {metric} 数值已正常", "数值已正常：{subject}"),
        over_body=("{since} 至 {until}（{duration}）期间数值可疑。",),
    ),
    NoticeKind.SOURCE_REMARK: NoticeText(
        title=("{source} 对 {task} 的 {metric} 有提示", "数据源提示：{subject}"),
        body=("提示内容：{remark}",),
    ),
    NoticeKind.UNKNOWN_STATUS: NoticeText(
        title=("无法识别 {task} 的状态“{status}”", "无法识别任务状态：{subject}"),
        body=("识别之前，该任务按运行中处理。",),
        over_title=("{task} 的状态已可识别", "任务状态已可识别：{subject}"),
        over_body=("{since} 至 {until}（{duration}）期间无法识别。",),
    ),
    NoticeKind.SET_RETIRED: NoticeText(
        title=("不再等待 {task} 的旧 Pod", "不再等待旧 Pod：{subject}"),
        body=("原因：{reason}", "以下 Pod 消失不再告警：{pods}"),
    ),
    NoticeKind.RULES_REJECTED: NoticeText(
        title=("新的规则文件有错误，未生效", "规则文件有错误，未生效：{subject}"),
        body=(
            "{problems}",
            "{running:.0}原有规则继续生效。",
            "{kept:.0}正在使用上一份正确的规则（{kept}）。",
        ),
        over_title=("规则文件已生效",),
        over_body=("{since} 至 {until}（{duration}）期间规则文件有错误。",),
    ),
    NoticeKind.SLOTS_LATE: NoticeText(
        title=("无法按间隔完成判断",),
        body=(
            "最近 {slots} 次判断中有 {missed} 次因前一次耗时过长而跳过。",
            "最近一次耗时 {took}，间隔为 {interval}。",
            "最慢的规则：{rule}",
            "告警会延迟。可以加长 `interval`、减少规则或换用更快的机器。",
        ),
        over_title=("已恢复按间隔判断",),
        over_body=("{since} 至 {until}（{duration}）期间未能按时判断。",),
    ),
    NoticeKind.TOO_MANY_ALERTS: NoticeText(
        title=("规则 {rule} 命中的对象过多，无法全部跟踪", "规则命中的对象过多：{subject}"),
        body=(
            "已跟踪：{limit}，未跟踪：{left}。",
            "有空余时会补报未跟踪的对象。",
            "可以按 pod 或任务分组，或用 `select` 缩小范围。",
        ),
        over_title=("规则 {rule} 已恢复全部跟踪", "{subject} 已恢复全部跟踪"),
        over_body=("{since} 至 {until}（{duration}）期间有对象未被跟踪。",),
    ),
    NoticeKind.TOO_MANY_SERIES: NoticeText(
        title=("{source} 的 {metric} 序列过多，无法全部保留", "序列过多：{subject}"),
        body=("已保留：{limit}，最近一次返回中未保留：{left}。", "未保留的序列不参与判断。"),
        over_title=("{metric} 的序列已恢复全部保留（{source}）", "序列数量已恢复正常：{subject}"),
        over_body=("{since} 至 {until}（{duration}）期间有序列未保留。",),
    ),
    NoticeKind.HEARTBEAT_UNHEARD: NoticeText(
        title=("外部心跳未被收到",),
        body=(
            "呼叫外部心跳监测已连续失败 {failures} 次，最近一次返回：{answer}",
            "对方会报告本程序已停止，但监控仍在进行。",
        ),
        over_title=("外部心跳已恢复",),
        over_body=("{since} 至 {until}（{duration}）期间未被收到。",),
    ),
    NoticeKind.STILL_WATCHING: NoticeText(
        title=("仍在监控：任务 {tasks} 个，规则 {rules} 条", "仍在监控"),
        body=("未结束的事件：{firing}", "但是：{but}"),
    ),
}
