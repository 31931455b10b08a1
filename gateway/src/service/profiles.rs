//! Projection profiles, as their owner reads them.

use crate::api::standing::{LevelInfo, ProfileInfo};
use oap_memory::profile::Table;
use oap_memory::{Profile, TrustLevel};

impl ProfileInfo {
    /// What a profile shows at each level.
    #[must_use]
    pub fn of(profile: &Profile) -> Self {
        Self {
            description: profile.description().to_owned(),
            entity: profile.entity_table().map(levels),
            entity_type: profile.entity_type().map(str::to_owned),
            hash: profile.hash(),
            levels: levels(profile.general_table()),
            minimum_level: profile.minimum_level().get(),
            name: profile.name().to_owned(),
        }
    }
}

fn levels(table: &Table) -> Vec<LevelInfo> {
    let adds = |level: TrustLevel| {
        let added = table.fields(level).filter(move |(at, _)| *at == level);
        added.map(|(_, field)| format!("{}{}", field.as_str(), field.conditions())).collect()
    };
    let info = |level| LevelInfo { adds: adds(level), text: table.text(level).to_string() };
    TrustLevel::all().map(info).collect()
}
