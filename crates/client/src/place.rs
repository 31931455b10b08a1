//! The parts of paths that vary.

use oap_identity::{
    AskId, BridgeId, DecisionId, DeletionId, GrantId, Hash, ItemId, JobId, ScopeId, SubscriptionId,
};
use schemars::JsonSchema;

/// What stands in a path where its braces are: text without a character that has to be encoded there.
pub trait Place: Sized + JsonSchema + 'static {
    /// The text; `None` for a path that does not vary.
    fn text(&self) -> Option<String>;

    /// From the text; `None` where it has another form.
    fn parse(text: Option<&str>) -> Option<Self>;
}

impl Place for () {
    fn text(&self) -> Option<String> {
        None
    }

    fn parse(text: Option<&str>) -> Option<Self> {
        text.is_none().then_some(())
    }
}

macro_rules! places {
    ($($name:ty),+ $(,)?) => {$(
        impl Place for $name {
            fn text(&self) -> Option<String> {
                Some(self.to_string())
            }

            fn parse(text: Option<&str>) -> Option<Self> {
                text?.parse().ok()
            }
        }
    )+};
}

places!(AskId, BridgeId, DecisionId, DeletionId, GrantId, Hash, ItemId, JobId, ScopeId, SubscriptionId);
