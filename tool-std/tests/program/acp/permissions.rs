//! Permission requests: what they show, and that only an offered option approves.

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, StopReason, ToolCallContent, ToolCallStatus,
};

use super::editor::{EditorFolder, PermissionChoice};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_shows_what_will_run() {
    let folder = EditorFolder::new();
    folder
        .run(async |editor| {
            editor.choose(PermissionChoice::Select("reject_once"));
            let session = editor.open(&folder.work()).await?;
            assert_eq!(editor.prompt(&session, "edit").await?, StopReason::EndTurn);
            let [request] = &*editor.take_permissions() else { panic!("one request") };
            let kinds: Vec<_> = request.options.iter().map(|option| option.kind).collect();
            let expected = [
                PermissionOptionKind::AllowOnce,
                PermissionOptionKind::AllowAlways,
                PermissionOptionKind::AllowAlways,
                PermissionOptionKind::RejectOnce,
                PermissionOptionKind::RejectAlways,
            ];
            assert_eq!(kinds, expected);
            let fields = &request.tool_call.fields;
            assert_eq!(fields.status, Some(ToolCallStatus::Pending));
            let content = fields.content.as_deref().unwrap_or_default();
            let [ToolCallContent::Diff(diff), ToolCallContent::Content(prompt)] = content else {
                panic!("{content:?}")
            };
            let prompt = serde_json::to_string(&prompt.content).expect("JSON");
            // The change is shown once, as the diff.
            assert!(
                prompt.contains("tool edit_file") && !prompt.contains("-helo world"),
                "{prompt}"
            );
            assert_eq!(diff.new_text, "hello world\n");
            assert_eq!(fields.raw_input, None);
            // The user said nothing, and the model reads no words of the user.
            let last = folder.model.requests().pop().expect("a request");
            let told = last.message["messages"].to_string();
            assert!(told.contains("may not run: the user rejected it\\\""), "{told}");
            Ok(())
        })
        .await;
    assert_eq!(folder.notes(), "helo world\n");
}

// AP7
#[tokio::test(flavor = "multi_thread")]
async fn only_an_offered_option_approves() {
    let folder = EditorFolder::new();
    folder
        .run(async |editor| {
            let session = editor.open(&folder.work()).await?;
            for choice in [
                PermissionChoice::Select("reject_once"),
                PermissionChoice::Select("yes"),
                PermissionChoice::Select(""),
                PermissionChoice::Cancel,
            ] {
                editor.choose(choice.clone());
                assert_eq!(editor.prompt(&session, "edit").await?, StopReason::EndTurn);
                assert_eq!(editor.take_permissions().len(), 1, "{choice:?}");
                assert_eq!(folder.notes(), "helo world\n", "{choice:?}");
            }
            // A rejection for the session is not asked again.
            let session = editor.open(&folder.work()).await?;
            editor.choose(PermissionChoice::Select("reject_always"));
            editor.prompt(&session, "edit").await?;
            editor.choose(PermissionChoice::Select("allow_once"));
            editor.prompt(&session, "edit").await?;
            assert_eq!((editor.take_permissions().len(), &*folder.notes()), (1, "helo world\n"));
            // Another session asks.
            let other = editor.open(&folder.work()).await?;
            editor.choose(PermissionChoice::Select("allow_session"));
            editor.prompt(&other, "edit").await?;
            editor.prompt(&other, "edit back").await?;
            assert_eq!((editor.take_permissions().len(), &*folder.notes()), (1, "helo world\n"));
            // What is allowed for always is so in sessions of later programs.
            let third = editor.open(&folder.work()).await?;
            editor.choose(PermissionChoice::Select("allow_always"));
            editor.prompt(&third, "edit").await?;
            Ok(())
        })
        .await;
    folder
        .run(async |editor| {
            let session = editor.open(&folder.work()).await?;
            editor.prompt(&session, "edit back").await?;
            assert_eq!((editor.take_permissions().len(), &*folder.notes()), (0, "helo world\n"));
            Ok(())
        })
        .await;
}

// The connection ends while the user is asked: the call does not run.
#[tokio::test(flavor = "multi_thread")]
async fn a_lost_connection_is_a_rejection() {
    let folder = EditorFolder::new();
    folder
        .run(async |editor| {
            let session = editor.open(&folder.work()).await?;
            tokio::select! {
                stop = editor.prompt(&session, "edit") => panic!("{stop:?}"),
                () = editor.until(|it| !it.permissions.lock().expect("no panic").is_empty()) => Ok(()),
            }
        })
        .await;
    assert_eq!(folder.notes(), "helo world\n");
}
