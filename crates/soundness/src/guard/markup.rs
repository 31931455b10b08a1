//! Syntax that a program acts on: marks of chat templates, calls of tools, HTML that runs or hides, links that carry data away.

use super::{Finding, Kind, Severity};
use regex::Regex;
use std::sync::LazyLock;

/// Most findings of one pattern in one text.
const MOST: usize = 4;

struct Pattern {
    kind: Kind,
    severity: Severity,
    says: &'static str,
    pattern: &'static str,
}

const fn pattern(kind: Kind, says: &'static str, pattern: &'static str) -> Pattern {
    Pattern { kind, severity: Severity::Hostile, says, pattern }
}

const fn suspect(kind: Kind, says: &'static str, pattern: &'static str) -> Pattern {
    Pattern { kind, severity: Severity::Suspect, says, pattern }
}

const TEMPLATE: &str = "It has marks with which a chat template separates who speaks.";
const TOOL: &str = "It has the syntax of a tool's call.";
const LEAK: &str = "It has an address that would carry away what is filled in.";

/// Over text in its common form: lower case.
const PATTERNS: &[Pattern] = &[
    pattern(Kind::Template, TEMPLATE, r"<\|[a-z0-9_ -]{1,40}\|>"),
    pattern(Kind::Template, TEMPLATE, r"\[/?inst\]|<</?sys>>|</?(?:start|end)_of_turn>|\[/?system_prompt\]"),
    pattern(
        Kind::Template,
        TEMPLATE,
        r"</?(?:system|assistant|human|system-reminder|system_prompt|instructions?)>",
    ),
    pattern(Kind::Template, TEMPLATE, r"\[(?:system|assistant)\](?:\(#|:)"),
    pattern(Kind::Template, TEMPLATE, r"(?s)(?:^|\n)[ >]*human: .{0,400}?\n[ >\n]*assistant:"),
    pattern(
        Kind::SystemPrompt,
        "It passes itself off as a system's message.",
        r"\b(?:begin|end) (?:of )?system (?:message|prompt)\b",
    ),
    pattern(
        Kind::SystemPrompt,
        "It passes itself off as a system's message.",
        r"(?:^|\n)[ >]*#{1,6} *(?:system|new|developer) (?:prompt|instructions?|message)\b",
    ),
    pattern(
        Kind::Tool,
        TOOL,
        r"</?(?:antml:)?(?:function_calls?|invoke|tool_call|tool_calls|tool_use|tool_result|tool_code|function_results)\b[^>]{0,80}>",
    ),
    pattern(Kind::Tool, TOOL, r#""role" *: *"(?:system|assistant|tool|developer)""#),
    pattern(
        Kind::Template,
        "It ends what it stands in, and goes on as somebody else.",
        r"(?s)</(?:documents?|context|retrieved|search_results?|tool_output|tool_response|user_input|untrusted|data)>.{0,200}?\b(?:human|user|system|assistant|instructions?):",
    ),
    pattern(Kind::Tool, TOOL, r#""method" *: *"tools/call""#),
    pattern(Kind::Tool, TOOL, r"<(?:antml:)?parameter name="),
    pattern(
        Kind::Tool,
        TOOL,
        r#"\{\s*"(?:name|tool|tool_name|function)" *: *"[a-z0-9_.-]{1,60}"\s*,\s*"(?:arguments|tool_input)" *:"#,
    ),
    pattern(Kind::Tool, TOOL, r#""(?:tool_calls|function_call|tool_use_id|tool_call_id)" *:"#),
    pattern(Kind::Tool, TOOL, r"(?:^|\n)[ >]*action: *[a-z_ -]{1,60}\n[ >]*action input:"),
    pattern(
        Kind::Tool,
        TOOL,
        r"\bmemory[_.](?:learn|recall|query|explain|correct|forget|diff|status|link|compact) ?\(",
    ),
    pattern(
        Kind::Html,
        "It has a script.",
        r"<script\b|</script *>|javascript *:[^ ]|data:text/html|vbscript *:",
    ),
    pattern(
        Kind::Html,
        "It has an element that loads or runs something.",
        r"<(?:iframe|object|embed|svg|form|meta|base|link)\b[^>]{0,200}(?:>|=)",
    ),
    pattern(
        Kind::Html,
        "It has an element that runs something.",
        r#"<[a-z][a-z0-9]*\b[^>]{0,200}\bon(?:error|load|click|mouseover|focus|toggle) *="#,
    ),
    pattern(
        Kind::Html,
        "It has text that a page does not show.",
        r#"<[a-z][a-z0-9]*\b[^>]{0,200}style *= *["'][^"'>]{0,200}(?:display *: *none|visibility *: *hidden|font-size *: *0|opacity *: *0)"#,
    ),
    pattern(
        Kind::Leak,
        LEAK,
        r#"<img\b[^>]{0,200}src *= *["']?https?://[^>]{0,400}[?&=][^>]{0,200}(?:\+|\$\{|\{\{|document|cookie)"#,
    ),
    // An address with something to fill in: braces, brackets, angles after the question mark or in the path.
    pattern(
        Kind::Leak,
        LEAK,
        r"!?\[[^\]\n]{0,200}\]\( *<?https?://[^)\s]{0,400}(?:\{\{|\$\{|%7b%7b|[=/](?:\[|<|%5b|%3c|\{))",
    ),
    pattern(
        Kind::Leak,
        LEAK,
        r"https?://[^\s)]{0,400}[?&=/](?:\{\{|\$\{|%7b%7b|<insert|<your|<user|\[insert|\[user|\[your)",
    ),
    // A picture whose address names what it would carry.
    pattern(
        Kind::Leak,
        LEAK,
        r"!\[[^\]\n]{0,200}\]\( *<?https?://[^)\s]{0,400}[?&][^)\s]{0,200}(?:user_?email|user_?data|conversation|chat_?history|secret|password|api_?key|token=|cookie|memory|summary|prompt|_here\b|notes=)",
    ),
    suspect(
        Kind::Leak,
        "It has a picture whose address carries much.",
        r"!\[[^\]\n]{0,200}\]\( *<?https?://[^)\s]{0,400}[?&][a-z0-9_.-]{1,40}=[a-z0-9+/_%=-]{80}",
    ),
];

static COMPILED: LazyLock<Vec<(Regex, &'static Pattern)>> = LazyLock::new(|| {
    PATTERNS.iter().filter_map(|pattern| Some((Regex::new(pattern.pattern).ok()?, pattern))).collect()
});

/// What of a text in its common form a program would act on.
pub(super) fn markup(text: &str) -> Vec<Finding> {
    let found = COMPILED.iter().flat_map(|(regex, pattern)| {
        regex.find_iter(text).take(MOST).map(|found| Finding {
            kind: pattern.kind,
            range: found.range(),
            severity: pattern.severity,
            says: pattern.says,
        })
    });
    found.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(COMPILED.len(), PATTERNS.len());
    }
}
