//! Where assistants keep their lists of servers, and how a server stands in them.

use clap::ValueEnum;
use std::path::{Path, PathBuf};

/// The name of the server in those lists.
pub(super) const SERVER: &str = "oap-memory";

/// An assistant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, strum::IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Assistant {
    /// Claude Desktop
    ClaudeDesktop,
    /// Claude Code, for all projects
    ClaudeCode,
    /// Cursor, for all projects
    Cursor,
    /// Visual Studio Code, for all workspaces
    Vscode,
    /// Codex
    Codex,
}

/// How a list of servers is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// JSON with the servers under this member; and whether each says that it is started.
    Json {
        /// The member.
        member: &'static str,
        /// Whether a server has `"type": "stdio"`.
        typed: bool,
    },
    /// TOML with a table for each server, under this one.
    Toml {
        /// The table.
        table: &'static str,
    },
}

/// The folders that the system has for somebody.
#[derive(Debug, Clone)]
pub(super) struct Folders {
    /// Their home.
    pub home: PathBuf,
    /// Where programs keep their settings.
    pub settings: PathBuf,
    /// Claude Code's own, where it is named.
    pub claude: Option<PathBuf>,
    /// Codex' own, where it is named.
    pub codex: Option<PathBuf>,
}

impl Folders {
    /// As the environment says.
    pub fn here() -> Self {
        let home = std::env::home_dir().unwrap_or_default();
        let named = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let settings = if cfg!(target_os = "macos") {
            home.join("Library/Application Support")
        } else {
            named("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"))
        };
        Self { claude: named("CLAUDE_CONFIG_DIR"), codex: named("CODEX_HOME"), settings, home }
    }
}

impl Assistant {
    /// Its name, as flags have it: also that of the agent that it is.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// The file of its servers.
    pub fn file(self, folders: &Folders) -> PathBuf {
        let Folders { home, settings, claude, codex } = folders;
        match self {
            Self::ClaudeDesktop => settings.join("Claude/claude_desktop_config.json"),
            Self::ClaudeCode => claude.as_ref().unwrap_or(home).join(".claude.json"),
            Self::Cursor => home.join(".cursor/mcp.json"),
            Self::Vscode => settings.join("Code/User/mcp.json"),
            Self::Codex => codex.clone().unwrap_or_else(|| home.join(".codex")).join("config.toml"),
        }
    }

    /// How that file is written.
    pub fn form(self) -> Form {
        match self {
            Self::ClaudeDesktop | Self::Cursor => Form::Json { member: "mcpServers", typed: false },
            Self::ClaudeCode => Form::Json { member: "mcpServers", typed: true },
            Self::Vscode => Form::Json { member: "servers", typed: true },
            Self::Codex => Form::Toml { table: "mcp_servers" },
        }
    }
}

/// How the server is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    /// The program.
    pub command: String,
    /// What it is told.
    pub arguments: Vec<String>,
}

impl Start {
    /// This program, for a home and an agent.
    pub fn of(program: &Path, home: &Path, agent: &str) -> Self {
        let home = home.to_string_lossy();
        let arguments = ["--home", &home, "mcp", "--agent", agent].map(str::to_owned).to_vec();
        Self { command: program.to_string_lossy().into_owned(), arguments }
    }
}
