//! `oap-memory clock`

use super::{CliError, Global, output};
use crate::api::health::{AcceptClock, ShowClock};

/// See whether the clock is believed, and accept it
#[derive(clap::Subcommand)]
#[command(after_help = "Examples:
  oap-memory clock show
  oap-memory clock accept

A gateway keeps the latest time that it acted at. While its clock is behind that by more than five minutes, or has leapt ahead by more
than 400 days, it serves no grants and erases nothing by itself. Set the system's clock right; where it is right, and what was
kept is wrong, accept it: every receipt chain that was dated later says so. A server must be restarted first if the clock moved
while it ran.")]
pub(super) enum Clock {
    /// What the clock says, and the latest time known
    Show,
    /// The clock is right: go by it from now on
    Accept,
}

impl Clock {
    pub(super) async fn run(self, global: &Global) -> Result<(), CliError> {
        let owner = global.owner().await?;
        let answer = match self {
            Self::Show => owner.get::<ShowClock>((), &()).await?,
            Self::Accept => owner.send::<AcceptClock>((), &()).await?,
        };
        output::print(global.json, &answer, |clock| {
            format!(
                "{}\nthe clock says       {}\nlatest time known    {}",
                clock.standing.as_str(),
                clock.clock,
                clock.mark
            )
        });
        Ok(())
    }
}
