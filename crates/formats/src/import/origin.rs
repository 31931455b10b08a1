//! Where records come from: what keeps the same id of two accounts, vaults or files apart.

use super::{FORMATS, Format, MAX_ID, Record};
use oap_identity::Hash;
use serde_json::{Value, json};

/// Largest file with an account's own data that is read for its id, in bytes.
pub const MAX_ACCOUNT_FILE: usize = 256 * 1024;

/// How far the source of a record is unique.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// Everywhere: a UUID, or a hash of all that the record says.
    World,
    /// Within one account of the vendor.
    Account,
    /// Within one file, whatever it is called.
    File,
    /// Within one file of a folder, by its name.
    Path,
}

impl Reach {
    /// The reach of an id that its vendor gave: [`Reach::World`] for UUIDs, ULIDs and hashes, with or without a prefix
    /// such as `agent-`.
    pub(super) fn of(id: &str, otherwise: Self) -> Self {
        let bare = match id.find(['-', '_']) {
            Some(end @ 1..=16) if id.as_bytes()[..end].iter().all(u8::is_ascii_alphabetic) => &id[end + 1..],
            _ => id,
        };
        let digits = |text: &str| text.bytes().filter(u8::is_ascii_hexdigit).count();
        let uuid = |text: &str| text.len() == 36 && digits(text) == 32 && text.matches('-').count() == 4;
        let hash = |text: &str| text.len() >= 32 && digits(text) == text.len();
        let ulid = |text: &str| {
            text.len() == 26 && text.bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        };
        if [id, bare].into_iter().any(|text| uuid(text) || hash(text) || ulid(text)) {
            Self::World
        } else {
            otherwise
        }
    }
}

/// Where a file comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// The name that the owner gave to what is imported. What comes under one name is one origin, whatever the files are.
    pub name: Option<String>,
    /// The account at the vendor, as the export tells it.
    pub account: Option<String>,
    /// What was imported, by its whole path.
    pub root: String,
    /// The file within it; empty where it is the file itself.
    pub file: String,
}

impl Origin {
    /// Completes a record's source and group with where it comes from, and its provenance with `origin` where that has a
    /// name. Without a name the account decides, for ids that it made or that are unique anyway; else the path of the
    /// file. Paths are hashed.
    pub fn complete(&self, record: &mut Record) {
        let account = record.account.as_ref().or(self.account.as_ref());
        let whole = [self.root.as_str(), self.file.as_str()].join("/");
        let path = |path: &str| format!("path:{}", digits(path.trim_end_matches('/')));
        let identity = match (&self.name, record.reach, account) {
            (Some(name), Reach::Path, _) if self.file.is_empty() => {
                format!("as:{name}/{}", self.root.rsplit('/').next().unwrap_or_default())
            }
            (Some(name), Reach::Path | Reach::File, _) if !self.file.is_empty() => {
                format!("as:{name}/{}", self.file)
            }
            (Some(name), ..) => format!("as:{name}"),
            (None, Reach::World | Reach::Account, Some(account)) => format!("account:{account}"),
            (None, Reach::World, None) => String::new(),
            (None, Reach::Account, None) => path(&self.root),
            (None, Reach::File | Reach::Path, _) => path(&whole),
        };
        let shown = match (&self.name, record.reach, account) {
            (Some(name), ..) => Some(name.clone()),
            (None, Reach::World | Reach::Account, Some(account)) => Some(account_label(account)),
            _ => None,
        };
        if let Some(shown) = shown {
            record.item["provenance"]["origin"] = json!(shown);
        }
        if !identity.is_empty() {
            record.source = format!("{}@{identity}", record.source);
        }
        if let Some(group) = &mut record.group {
            *group = format!("{group}@{identity}");
        }
    }
}

/// An account without its id: enough to tell the owner's few apart.
fn account_label(account: &str) -> String {
    format!("account-{}", digits(account).chars().take(8).collect::<String>())
}

/// The digits of a hash of where something comes from. They stand without the name of the hash, which in a source marks
/// content that must not outlive its item.
fn digits(text: &str) -> String {
    Hash::of(text.as_bytes()).to_string().trim_start_matches("sha256:").to_owned()
}

/// The id of the account in the file that a vendor writes about it (ChatGPT's `user.json`, Claude's `users.json`), and the
/// format that it counts for. Such files are no memory; nothing else is taken from them.
#[must_use]
pub fn account(name: &str, bytes: &[u8]) -> Option<(Format, String)> {
    if !names_account(name) || bytes.len() > MAX_ACCOUNT_FILE {
        return None;
    }
    let document = oap_identity::json::parse(bytes).ok()?;
    let user = document.as_array().map_or(&document, |users| users.first().unwrap_or(&Value::Null));
    let (format, id) = FORMATS
        .iter()
        .find_map(|importer| Some((importer.format, user.get(importer.account_id?)?.as_str()?)))?;
    (1..=MAX_ID).contains(&id.len()).then(|| (format, id.to_owned()))
}

/// Whether an account's own data may be in a file, by its name.
pub(crate) fn names_account(name: &str) -> bool {
    matches!(name.rsplit('/').next(), Some("user.json" | "users.json"))
}
