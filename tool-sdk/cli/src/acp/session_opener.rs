//! Builds sessions on the main thread, because the callbacks of the program stay on it.

use std::path::PathBuf;

use agent_client_protocol::v1::schema::McpServer;
use clap::ArgMatches;
use tokio::sync::oneshot;

use crate::chat::{ChatPlace, Conversation, StoredConversations};
use crate::exit::{CommandError, Result};
use crate::mcp::ServerEntry;
use crate::settings::Settings;
use crate::{App, Io};

/// What the connection requests of the main thread.
pub(super) enum OpenerRequest {
    /// Open a session.
    Open(Box<SessionRequest>),
    /// Print a warning on standard error.
    Warn(String),
}

/// The session that a client opens.
pub(super) struct SessionRequest {
    /// The folder, which becomes the root.
    pub(super) folder: PathBuf,
    /// The MCP servers of the client.
    pub(super) servers: Vec<McpServer>,
    /// The stored conversation that goes on.
    pub(super) resumed: Option<String>,
    pub(super) opened: oneshot::Sender<std::result::Result<OpenedSession, String>>,
}

/// An opened session: its conversation, and what the settings say about it.
pub(super) struct OpenedSession {
    pub(super) conversation: Conversation,
    pub(super) root: PathBuf,
    /// Whether the user of the editor approves calls.
    pub(super) asks_user: bool,
    /// Whether the program was started in the mode `bypass`.
    pub(super) offers_bypass: bool,
}

/// Opens sessions with the settings of the program.
pub(super) struct SessionOpener<'a, 'io> {
    pub(super) app: &'a App,
    pub(super) program: &'a str,
    pub(super) levels: &'a [&'a ArgMatches],
    pub(super) matches: &'a ArgMatches,
    pub(super) io: &'a mut Io<'io>,
}

impl SessionOpener<'_, '_> {
    pub(super) async fn answer(&mut self, request: OpenerRequest) {
        match request {
            OpenerRequest::Warn(text) => super::print_warning(self.io, &text),
            OpenerRequest::Open(request) => {
                let SessionRequest { folder, servers, resumed, opened } = *request;
                let session = self.open(folder, &servers, resumed.as_deref()).await;
                // Fails when the connection has ended.
                let _ = opened.send(session.map_err(|error| error.into_cause().to_string()));
            }
        }
    }

    async fn open(
        &mut self,
        folder: PathBuf,
        servers: &[McpServer],
        resumed: Option<&str>,
    ) -> Result<OpenedSession> {
        use crate::settings::PromptMode;

        let mut settings =
            Settings::load_for_folder(self.levels, folder.clone(), self.program, self.io)?;
        self.app.add_plugin_servers(&mut settings);
        for server in servers {
            add_server(&mut settings, server)?;
        }
        let config = settings.chat.resolve(Some(self.matches), self.io)?;
        let resumed = match resumed {
            Some(id) => Some(StoredConversations::new(&settings).load(id).await?),
            None => None,
        };
        let conversation = Conversation::open_at(
            self.app,
            self.program,
            &settings,
            config,
            ChatPlace::Editor,
            resumed,
            self.io,
        )?;
        Ok(OpenedSession {
            conversation,
            root: folder,
            asks_user: settings.prompt_mode == PromptMode::Terminal,
            offers_bypass: settings.mode == tool_sdk_core::Mode::Bypass,
        })
    }
}

/// Adds an MCP server of the client. One with the name of a configured server is left out, because
/// the user configured that one.
fn add_server(settings: &mut Settings, server: &McpServer) -> Result<()> {
    let entry = match server {
        McpServer::Stdio(server) => {
            let env = server.env.iter().map(|it| (it.name.clone(), it.value.clone()));
            let command = server.command.to_string_lossy();
            ServerEntry::for_command(&server.name, &command, &server.args, env)
        }
        McpServer::Http(server) => {
            let headers = server.headers.iter().map(|it| (it.name.clone(), it.value.clone()));
            ServerEntry::for_url(&server.name, &server.url, headers)
        }
        _ => Err("only the transports stdio and http are supported".to_owned()),
    };
    let entry = entry.map_err(|problem| {
        CommandError::config(format_args!("an MCP server of the client: {problem}"))
    })?;
    if !settings.servers.iter().any(|known| known.has_name_of(&entry)) {
        settings.servers.push(entry);
    }
    Ok(())
}
