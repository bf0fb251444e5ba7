//! Sessions: how they are opened, listed, shown again and closed.

use std::collections::BTreeMap;

use agent_client_protocol::v1::schema::ClientCapabilities;
use agent_client_protocol::v1::schema::{
    CloseSessionRequest, EnvVariable, ListSessionsRequest, LoadSessionRequest, McpServer,
    McpServerStdio, NewSessionRequest, ResumeSessionRequest, SessionUpdate, StopReason,
    ToolCallContent,
};

use super::editor::{EditorFolder, PermissionChoice, agent_text, update_names};

#[tokio::test(flavor = "multi_thread")]
async fn the_agent_announces_what_it_does() {
    let folder = EditorFolder::new();
    folder
        .run_with(ClientCapabilities::new(), async |editor, agent| {
            let capabilities = agent.agent_capabilities;
            assert!(capabilities.load_session && agent.auth_methods.is_empty());
            let prompt = capabilities.prompt_capabilities;
            assert_eq!((prompt.image, prompt.embedded_context, prompt.audio), (true, true, false));
            let mcp = capabilities.mcp_capabilities;
            assert_eq!((mcp.http, mcp.sse), (true, false));
            let session = capabilities.session_capabilities;
            assert!(session.list.is_some() && session.resume.is_some() && session.close.is_some());
            assert!(session.delete.is_none() && session.additional_directories.is_none());
            assert_eq!(agent.agent_info.map(|it| it.name).as_deref(), Some("tool-std"));
            let file = folder.work().join("notes.txt");
            for (cwd, problem) in [
                ("relative", "must be an absolute path"),
                ("/no/such/folder", "not an existing folder"),
                (file.to_str().unwrap_or_default(), "not an existing folder"),
                ("/", "the session would be opened in `/`, and all of it would be open"),
            ] {
                let opened = editor.connection.send_request(NewSessionRequest::new(cwd));
                let refused = opened.block_task().await.expect_err("it is refused");
                assert!(refused.message.contains(problem), "{refused:?}");
            }
            Ok(())
        })
        .await;
}

// A loaded session looks as it did when it ran: titles, diffs and errors.
#[tokio::test(flavor = "multi_thread")]
async fn a_loaded_session_looks_as_it_did() {
    /// Returns the titles of calls, and the last content of each.
    fn look(updates: &[SessionUpdate]) -> (Vec<String>, Vec<Vec<ToolCallContent>>) {
        let (mut titles, mut contents) = (Vec::new(), BTreeMap::new());
        for update in updates {
            match update {
                SessionUpdate::ToolCall(call) => titles.push(call.title.clone()),
                SessionUpdate::ToolCallUpdate(call) => {
                    if let Some(content) = &call.fields.content {
                        contents.insert(call.tool_call_id.0.to_string(), content.clone());
                    }
                }
                _ => {}
            }
        }
        (titles, contents.into_values().collect())
    }

    let folder = EditorFolder::new();
    for choice in ["allow_once", "reject_once"] {
        let (session, live) = folder
            .run(async |editor| {
                editor.choose(PermissionChoice::Select(choice));
                let session = editor.open(&folder.work()).await?;
                editor.prompt(&session, "typo").await?;
                Ok((session, look(&editor.take_updates())))
            })
            .await;
        folder
            .run(async |editor| {
                let load = LoadSessionRequest::new(session.clone(), folder.work());
                editor.connection.send_request(load).block_task().await?;
                assert_eq!(look(&editor.take_updates()), live, "{choice}");
                Ok(())
            })
            .await;
        std::fs::write(folder.work().join("notes.txt"), "helo world\n").expect("a file");
    }
}

// The conversation is in the store from which `chat --resume` reads.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_listed_loaded_and_resumed_by_another_process() {
    let folder = EditorFolder::new();
    let session = folder
        .run(async |editor| {
            editor.choose(PermissionChoice::Select("allow_once"));
            let session = editor.open(&folder.work()).await?;
            editor.prompt(&session, "typo").await?;
            Ok(session)
        })
        .await;
    folder
        .run(async |editor| {
            let list = ListSessionsRequest::new().cwd(folder.work());
            let listed = editor.connection.send_request(list).block_task().await?.sessions;
            let [listed] = &*listed else { panic!("{listed:?}") };
            assert_eq!((&listed.session_id, &listed.cwd), (&session, &folder.work()));
            assert_eq!(listed.title.as_deref(), Some("typo"));
            let elsewhere = ListSessionsRequest::new().cwd(folder.state());
            let listed = editor.connection.send_request(elsewhere).block_task().await?;
            assert!(listed.sessions.is_empty());

            let load = LoadSessionRequest::new(session.clone(), folder.work());
            editor.connection.send_request(load).block_task().await?;
            let updates = editor.take_updates();
            let names = update_names(&updates);
            let call = ["tool_call", "tool_call_update"];
            let expected = [
                &["user_message_chunk", "agent_message_chunk"][..],
                &call,
                &call,
                &call,
                &["agent_message_chunk", "plan"],
            ]
            .concat();
            assert_eq!(names[..expected.len()], expected, "{names:?}");
            assert_eq!(agent_text(&updates), "I look. I am done.");
            // The id of a call is one that the client has not seen.
            editor.prompt(&session, "edit").await?;
            let ids = |updates: &[SessionUpdate]| -> Vec<String> {
                let id = |update: &SessionUpdate| match update {
                    SessionUpdate::ToolCall(call) => Some(call.tool_call_id.0.to_string()),
                    _ => None,
                };
                updates.iter().filter_map(id).collect()
            };
            assert_eq!(ids(&updates), ["c0", "c1", "c2"]);
            assert_eq!(ids(&editor.take_updates()), ["c0#2"]);

            // A resumed session is not shown again.
            let close = CloseSessionRequest::new(session.clone());
            editor.connection.send_request(close).block_task().await?;
            let gone = editor.prompt(&session, "Hi").await.expect_err("the session is closed");
            assert_eq!(gone.code.value(), -32002);
            let resume = ResumeSessionRequest::new(session.clone(), folder.work());
            editor.connection.send_request(resume).block_task().await?;
            assert_eq!(editor.prompt(&session, "Hi").await?, StopReason::EndTurn);
            let names = update_names(&editor.take_updates());
            assert!(!names.iter().any(|it| it == "user_message_chunk"), "{names:?}");
            for id in ["", "../x", "1-0"] {
                let load = LoadSessionRequest::new(id, folder.work());
                let missing = editor.connection.send_request(load).block_task().await;
                assert!(missing.is_err(), "{id}");
            }
            Ok(())
        })
        .await;
    let last = folder.model.requests().pop().expect("a request");
    let prompts: Vec<&str> = last.message["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|message| message["role"] == "user")
        .filter_map(|message| message["content"].as_str())
        .collect();
    assert_eq!(prompts, ["typo", "edit", "Hi"]);
    let chat = tokio::process::Command::new(env!("CARGO_BIN_EXE_tool-std"))
        .args(["--config", "/dev/null", "--state-dir"])
        .arg(folder.state())
        .args(["chat", "--print", "And now?", "--resume", &session.0])
        .args(folder.model_args())
        .env("OPENAI_API_KEY", "k-1")
        .current_dir(folder.work())
        .stdin(std::process::Stdio::null())
        .output()
        .await
        .expect("the program runs");
    assert_eq!(String::from_utf8_lossy(&chat.stdout), "Hello\n", "{chat:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_client_are_connected() {
    let folder = EditorFolder::new();
    folder
        .run(async |editor| {
            editor.choose(PermissionChoice::Select("allow_once"));
            let root = folder.work().display().to_string();
            let server = McpServerStdio::new("other", env!("CARGO_BIN_EXE_tool-std"))
                .args(["--root", &root, "serve", "mcp"].map(str::to_owned).into())
                .env(vec![EnvVariable::new("TOOL_SDK_CONFIG", "/dev/null")]);
            let open =
                NewSessionRequest::new(folder.work()).mcp_servers(vec![McpServer::Stdio(server)]);
            let session = editor.connection.send_request(open).block_task().await?.session_id;
            editor.prompt(&session, "foreign").await?;
            let text = agent_text(&editor.take_updates());
            assert!(text.contains("helo world"), "{text}");
            Ok(())
        })
        .await;
}

// `--root` limits the folders in which sessions are opened.
#[tokio::test(flavor = "multi_thread")]
async fn named_roots_limit_the_folders_of_sessions() {
    let mut folder = EditorFolder::new();
    let inner = folder.work().join("inner");
    std::fs::create_dir(&inner).expect("a folder");
    folder.options = vec!["--root".to_owned(), folder.work().display().to_string()];
    folder
        .run(async |editor| {
            editor.open(&inner).await?;
            let opened = editor.open(folder.work().parent().expect("a folder")).await;
            let refused = opened.expect_err("it is refused");
            assert!(refused.message.contains("is outside of the folders"), "{refused:?}");
            Ok(())
        })
        .await;
}
