//! The programs of a screen, and the one screen that a session has: started together, ended
//! together.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::sync::{Mutex, MutexGuard, mpsc};
use tool_sdk::process::{BackgroundCommand, BackgroundProcess, BackgroundProcesses, RunError};
use tool_sdk::{Context, ToolError};

use super::ScreenLocation;

/// How long a program may take until it says that it is ready.
const START_LIMIT: Duration = Duration::from_secs(20);

/// How many bytes of a program's output are read until it is ready.
const MAX_START_OUTPUT: usize = 64 << 10;

/// The processes of a screen and their private folder. Dropping the last clone ends the processes
/// and removes the folder.
#[derive(Clone, Debug)]
pub(super) struct ScreenProcesses {
    processes: BackgroundProcesses,
    folder: Arc<TempDir>,
}

impl ScreenProcesses {
    /// Makes the folder, which only this user can enter.
    pub(super) fn in_private_folder() -> Result<Self, ToolError> {
        let folder =
            tempfile::Builder::new().prefix("tool-screen-").tempdir().map_err(|error| {
                ToolError::unavailable("no folder for temporary files can be made").source(error)
            })?;
        Ok(Self { processes: BackgroundProcesses::default(), folder: Arc::new(folder) })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Makes a folder below the private one and returns its path.
    pub(super) fn create_folder(&self, name: &str) -> io::Result<std::path::PathBuf> {
        let path = self.folder().join(name);
        DirBuilder::new().create(&path)?;
        Ok(path)
    }

    /// Writes a file that only this user can read, and returns its path.
    pub(super) fn write_file(&self, name: &str, bytes: &[u8]) -> io::Result<std::path::PathBuf> {
        let path = self.folder().join(name);
        let mut file: File =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        file.write_all(bytes)?;
        Ok(path)
    }

    /// Reads a file that one of the programs writes.
    pub(super) fn read_file(&self, name: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut file = OpenOptions::new().read(true).open(self.folder().join(name))?;
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Starts a program that ends with the pipeline. `package` names what to install when it is
    /// absent.
    pub(super) fn start_program(
        &self,
        command: BackgroundCommand,
        program: &str,
        package: &str,
        cx: &Context,
    ) -> Result<Arc<BackgroundProcess>, ToolError> {
        let command = command.cancel_on(cx.shutdown_token());
        self.processes.spawn(&command).map_err(|error| start_error(error, program, package))
    }

    /// Ends the processes and waits for their end.
    pub(super) async fn shut_down(&self) {
        self.processes.shut_down().await;
    }

    /// Ends the processes when the pipeline is closed, which waits for them.
    fn end_with_pipeline(&self, cx: &Context) {
        let processes = self.processes.downgrade();
        cx.on_close("screens", async move || {
            if let Some(processes) = processes.upgrade() {
                processes.shut_down().await;
            }
        });
    }
}

/// A terminal or a desktop whose programs have been started.
pub(super) trait RunningScreen: Send + Sync {
    fn processes(&self) -> &ScreenProcesses;

    fn location(&self) -> ScreenLocation;

    /// Whether the user still has it: the user may have ended what runs there.
    fn is_running(&self) -> impl Future<Output = Result<bool, ToolError>> + Send;
}

/// The screen that a session has, if any.
pub(super) struct SessionScreen<S>(Arc<Mutex<Option<S>>>);

impl<S> Clone for SessionScreen<S> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<S> Default for SessionScreen<S> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<S: RunningScreen> SessionScreen<S> {
    /// Returns the screen if it runs, and ends what is left of one that the user has ended.
    pub(super) async fn lock_running(&self) -> Result<MutexGuard<'_, Option<S>>, ToolError> {
        let mut kept = self.0.lock().await;
        if let Some(screen) = &*kept
            && !screen.is_running().await?
        {
            screen.processes().shut_down().await;
            *kept = None;
        }
        Ok(kept)
    }

    /// Returns where the screen is; one that does not run is started first.
    pub(super) async fn locate_or_start(
        &self,
        start: impl Future<Output = Result<S, ToolError>>,
        cx: &Context,
    ) -> Result<ScreenLocation, ToolError> {
        let mut kept = self.lock_running().await?;
        if let Some(screen) = &*kept {
            return Ok(screen.location());
        }
        let screen = kept.insert(start.await?);
        screen.processes().end_with_pipeline(cx);
        Ok(screen.location())
    }

    pub(super) async fn locate(&self) -> Result<Option<ScreenLocation>, ToolError> {
        Ok(self.lock_running().await?.as_ref().map(S::location))
    }

    /// Ends the screen and returns whether there was one.
    pub(super) async fn stop(&self) -> Result<bool, ToolError> {
        let mut kept = self.lock_running().await?;
        let Some(screen) = &*kept else { return Ok(false) };
        screen.processes().shut_down().await;
        *kept = None;
        Ok(true)
    }
}

/// Returns the error of a program that does not start, or that is absent.
pub(super) fn start_error(error: RunError, program: &str, package: &str) -> ToolError {
    let is_absent =
        matches!(&error, RunError::Spawn { source, .. } if source.kind() == ErrorKind::NotFound);
    if !is_absent {
        return ToolError::unavailable(format!("`{program}` does not start")).source(error);
    }
    ToolError::unavailable(format!("the program `{program}` is not installed"))
        .hint(format!("ask the user to install the package `{package}`"))
        .source(error)
}

/// Waits until the output of `process` has what `find` looks for.
pub(super) async fn wait_until_ready<T>(
    process: &BackgroundProcess,
    program: &str,
    find: impl Fn(&str) -> Option<T>,
) -> Result<T, ToolError> {
    let (sender, mut chunks) = mpsc::unbounded_channel();
    let exit = process.wait_for_exit(move |chunk| {
        // Cannot be delivered once this function has returned.
        let _ = sender.send(chunk.to_vec());
    });
    let mut output = Vec::new();
    let search = async {
        while let Some(chunk) = chunks.recv().await {
            output.extend(chunk);
            output.truncate(MAX_START_OUTPUT);
            if let Some(found) = find(&String::from_utf8_lossy(&output)) {
                return Some(found);
            }
        }
        None
    };
    let found = tokio::select! {
        biased;
        found = search => found,
        () = exit => None,
        () = tokio::time::sleep(START_LIMIT) => None,
    };
    found.ok_or_else(|| {
        let output = String::from_utf8_lossy(&output);
        let last = output.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("nothing");
        ToolError::unavailable(format!("`{program}` is not ready; it printed: {last}"))
    })
}
