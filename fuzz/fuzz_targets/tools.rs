//! The arguments of the memory tools, as an assistant sends them: the first byte chooses the tool.

#![no_main]

use libfuzzer_sys::fuzz_target;
use oap_agents::Tool;
use oap_identity::json;
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let Some((first, rest)) = data.split_first() else { return };
    let tool = Tool::ALL[usize::from(*first) % Tool::ALL.len()];
    if let Ok(Value::Object(arguments)) = json::parse(rest) {
        let _ = tool.ask(arguments);
    }
});
