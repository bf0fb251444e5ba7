//! What whoever is asked about typing is shown.

use std::sync::Arc;

use serde_json::json;
use tool_sdk::{Approver, Mode, Reply, Scripted};

use crate::support::{Host, session_of};

// SB2, SH9: into which session it goes, and how far that is confined.
#[tokio::test]
async fn an_ask_about_typing_shows_the_session() {
    let host = Host::new(Mode::Auto, &["allow exec_command(cat)"]);
    let asked = Arc::new(Scripted::always(Reply::Reject));
    let approver: Arc<dyn Approver> = Arc::<Scripted>::clone(&asked);
    let host = Host { session: host.session.clone().with_shared_approver(approver), ..host };
    let cmd = json!({ "cmd": "cat", "tty": true, "yield_time_ms": 250 });
    let session = session_of(&host.call("exec_command", cmd).await);
    host.error("write_stdin", json!({ "session_id": session, "chars": "x\n" })).await;
    let preview = asked.asked()[0].preview.clone();
    assert_eq!(preview, Some(json!({ "session": "cat", "sandbox": "off" })));
}
