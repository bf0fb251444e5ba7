//! Everything that a call needs: tools behind their guard, folders, and whoever is asked.

use std::pin::Pin;
use std::sync::Arc;

use clap::ArgMatches;
use tokio_util::sync::CancellationToken;

use super::exit::Result;
use super::guard::{Answers, Guard};
use super::terminal::{AtTerminal, Floor};
use super::watch::Watch;
use super::{App, Io, place, style};
use crate::context::{Client, Session};
use crate::permission::{Approver, Ask, Reply};
use crate::pipeline::Pipeline;
use crate::toolset::Toolset;

/// Where calls are made.
pub(super) struct Stage {
    pub(super) pipeline: Pipeline,
    pub(super) session: Session,
    /// Ends every call.
    pub(super) stop: CancellationToken,
    floor: Floor,
}

impl Stage {
    /// `levels` are the options from left to right.
    pub(super) fn set(app: &App, levels: &[&ArgMatches], io: &Io<'_>) -> Result<Self> {
        let guard = Guard::load(levels, io)?;
        let stop = CancellationToken::new();
        let session = Session::new("cli")
            .with_client(Client::Cli)
            .lend(place::workspace(levels, io)?)
            .lend(guard.settings);
        let session = app.equip(session).with_cancel(stop.clone());

        let mut pipeline =
            Pipeline::new(Toolset::new(app.registry.clone())).mode(guard.mode).rules(guard.rules);
        if let Some(dir) = place::state_dir(levels, io) {
            pipeline = pipeline.output_dir(dir.join("outputs"));
        }
        let floor = Floor::default();
        pipeline = match (guard.answers, &io.console) {
            (Answers::Yes, _) => pipeline.approver(Yes),
            (Answers::Terminal, Some(console)) => {
                pipeline.approver(AtTerminal::new(Arc::clone(console), floor.clone()))
            }
            (Answers::Terminal, None) | (Answers::Nobody, _) => pipeline,
        };
        Ok(Self { pipeline, session, stop, floor })
    }

    /// Whoever is told of the calls: events as lines where that is wanted, a person at a
    /// terminal, or nobody.
    pub(super) fn watch(&self, events: bool, io: &Io<'_>) -> Watch {
        match (events, io.live && !style::is_dumb(io)) {
            (true, _) => Watch::lines(self.pipeline.subscribe()),
            (false, true) => Watch::live(self.pipeline.subscribe(), self.floor.clone()),
            (false, false) => Watch::nobody(),
        }
    }
}

/// Says yes to everything, once.
struct Yes;

impl Approver for Yes {
    fn ask(&self, _: Arc<Ask>) -> Pin<Box<dyn Future<Output = Option<Reply>> + Send>> {
        Box::pin(std::future::ready(Some(Reply::Once)))
    }
}
