//! A bash that is kept: it runs one script after another, each of which leaves it as it was.
//!
//! It is asked over a socket, which nobody else can open, and takes a request as texts of known
//! lengths, so that nothing in a script means anything to what reads it. While a script runs,
//! the shell is the process of that call in every way.
//!
//! **Invariant:** a shell gets another script only when nothing is left of the one before: no
//! process, and nobody who could write into its output.

mod idle;
mod talk;

use std::fs;
use std::io;
use std::path::Path;
use std::pin::pin;
use std::process::ExitStatus;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures_util::FutureExt as _;
use futures_util::future::FusedFuture as _;
use rustix::fs::{Access, access};
use tokio::runtime::{Handle, Id};
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

pub(super) use self::idle::Idle;
use self::talk::{Answer, Talk};
use super::super::group::Group;
use super::super::mark::Mark;
use super::super::program::Program;
use super::super::tree::Tree;
use super::super::{ChildEnv, DRAIN, Exit, Limits};
use super::live::{self, Process, Shared, Spawn, beside, read};

/// What the shell runs. Of each request it reads how long the folder is and how long folder,
/// script and secret are together, the secret, the folder, the script, and the secret again;
/// where these do not fit together it ends. It says that the script begins, and how it ended.
///
/// It forgets its last folder and where programs lie: a shell that has just started knows
/// neither. It is one line, so that bash counts the lines of a script from 1. Where others
/// complain it has the reading end of a pipe, whose other end it opens for each script.
const READER: &str = concat!(
    r#"while read -r -N 48 _head && read -r -N "${_head:8:8}" _text "#,
    r#"&& [ "${_text: -32}" = "${_head:16}" ]; do "#,
    r#"cd -P -- "${_text:0:10#${_head:0:8}}" && unset OLDPWD && hash -r "#,
    r#"&& { printf '%s begun\n' "${_head:16}" >&0 "#,
    r#"&& eval -- "${_text:10#${_head:0:8}:-32}" </dev/null; } >/proc/self/fd/2 2>&1; "#,
    r#"printf '%s %s\n' "${_head:16}" "$?"; done"#,
);

/// How long one that was let go takes to end.
const LET_GO: Duration = Duration::from_secs(2);

/// A running shell.
struct Shell {
    tree: Tree,
    talk: Talk,
    env: ChildEnv,
    limits: Limits,
    /// Its streams are bound to it.
    runtime: Id,
    idle_since: Instant,
}

/// One script on its way.
struct Call {
    spawn: Spawn,
    /// For a shell of its own, should the kept one not begin.
    mark: Mark,
    group: Group,
    /// Where the shell goes when it is done.
    idle: Weak<Idle>,
}

/// Whether a kept shell may run it, and would do so in the same folder.
fn is_for_kept_shell(spawn: &Spawn) -> bool {
    let Some(script) = &spawn.script else { return false };
    let folder = spawn.program.folder.as_deref().filter(|folder| folder.is_absolute());
    let Some(folder) = folder.and_then(Path::to_str) else { return false };
    !script.contains('\0')
        && !spawn.terminal
        && spawn.program.sandbox.is_off()
        && access(Path::new(folder).join("."), Access::EXEC_OK).is_ok()
}

impl Shell {
    fn start(spawn: &Spawn, mark: Mark) -> io::Result<Self> {
        let mut program = Program::new("bash", ["--noprofile", "--norc", "-c", READER]);
        program.env = spawn.program.env.clone();
        program.limits = spawn.program.limits;
        program.folder = Some("/".into());
        // What a script leaves behind is then seen.
        program.adopts = true;
        let (talk, ends) = Talk::new()?;
        Ok(Self {
            tree: Tree::start_on(&program, mark, &ends, spawn.grace)?,
            talk,
            env: program.env,
            limits: program.limits,
            runtime: Handle::current().id(),
            idle_since: Instant::now(),
        })
    }

    fn fits(&self, spawn: &Spawn) -> bool {
        self.env == spawn.program.env
            && self.limits == spawn.program.limits
            && self.runtime == Handle::current().id()
            && !self.tree.has_ended()
    }

    /// Has it run `spawn` as the process `id`; `mark` is for another shell, should this one not
    /// begin.
    fn run(mut self, id: u32, spawn: &Spawn, mark: Mark, idle: Weak<Idle>) -> Process {
        let group = Group::none();
        self.tree.lend(&group, spawn.grace);
        let call = Call { spawn: spawn.clone(), mark, group: group.clone(), idle };
        Process::driven(id, spawn, Some(group), |shared, kill| drive(self, call, shared, kill))
    }

    /// Takes it back from a call, whose output somebody may still hold.
    async fn over(mut self, call: &Call, is_held: bool) {
        self.tree.lend(&Group::none(), call.spawn.grace);
        match call.idle.upgrade().filter(|_| !is_held && self.is_alone()) {
            Some(idle) => idle.put(self),
            None => self.let_go().await,
        }
    }

    /// Whether nothing is left of what it started: whatever lost its parents is its own child.
    fn is_alone(&self) -> bool {
        let number = self.tree.group().and_then(|group| group.number());
        number.is_some_and(|number| {
            let children = fs::read(format!("/proc/{number}/task/{number}/children"));
            children.is_ok_and(|children| children.is_empty())
        })
    }

    /// Lets it end by itself, so that what it started lives on.
    async fn let_go(mut self) {
        drop(self.talk);
        // What does not end is ended when it is dropped.
        let _ = timeout(LET_GO, self.tree.wait()).await;
    }
}

/// Looks after a script until it has ended.
async fn drive(mut shell: Shell, call: Call, shared: Arc<Shared>, kill: CancellationToken) {
    let begun = tokio::select! {
        begun = shell.talk.begin(&call.spawn) => begun,
        () = kill.cancelled() => {
            let exit = ended(shell.tree.end().await);
            // A code would be the shell's own.
            return shared.end(if let Exit::Code(_) = exit { Exit::Unknown } else { exit });
        }
    };
    let Ok((output, secret)) = begun else {
        shell.tree.lend(&Group::none(), call.spawn.grace);
        drop(shell);
        return alone(call, shared, kill).await;
    };
    let mut reading = pin!(read(Box::new(output), &shared).fuse());
    let Shell { tree, talk, .. } = &mut shell;
    let (exit, is_over) = beside(reading.as_mut(), async {
        tokio::select! {
            Some(Answer::Ended(code)) = talk.answer(&secret) => (Exit::Code(code), true),
            status = tree.wait() => (ended(status.ok()), false),
            () = kill.cancelled() => (ended(tree.end().await), false),
        }
    })
    .await;
    if !reading.is_terminated() {
        // What it left behind may hold the pipe open for ever.
        let _ = timeout(DRAIN, reading.as_mut()).await;
    }
    if is_over {
        shell.over(&call, !reading.is_terminated()).await;
    }
    shared.end(exit);
}

fn ended(status: Option<ExitStatus>) -> Exit {
    status.map_or(Exit::Unknown, Exit::of)
}

/// Runs it in a shell of its own, because the kept one did not begin.
async fn alone(call: Call, shared: Arc<Shared>, kill: CancellationToken) {
    let Call { spawn, mark, group, .. } = call;
    match Tree::start(&spawn.program, mark, spawn.wiring(), spawn.grace) {
        Ok((mut tree, streams)) => {
            tree.lend(&group, spawn.grace);
            live::drive(tree, streams.output, shared, kill).await;
        }
        Err(error) => {
            shared.push(format!("bash could not be started: {error}\n").as_bytes());
            shared.end(Exit::Unknown);
        }
    }
}

#[cfg(test)]
mod tests;
