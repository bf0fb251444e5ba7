//! Tests of the tasks of a server.

use std::time::SystemTime;

use tool_sdk_core::GrantScope;
use tool_sdk_core::internal::LazyCancelToken;

use super::*;
use crate::server::listing::ProtocolEra;

fn owner(principal: &str) -> TaskOwner {
    TaskOwner { principal: Some(principal.to_owned()), streams: None, era: ProtocolEra::Modern }
}

fn task(id: usize, principal: &str) -> Arc<CallTask> {
    let cancel = LazyCancelToken::default();
    Arc::new(CallTask::new(id.to_string(), owner(principal), DEFAULT_TTL, GrantScope::Once, cancel))
}

#[test]
fn a_task_is_found_by_its_owner_only() {
    let store = TaskStore::default();
    store.insert(&task(1, "ada")).unwrap();
    assert!(store.find("1", &owner("ada")).is_ok());
    let in_old_era = TaskOwner { era: ProtocolEra::Legacy, ..owner("ada") };
    let at_streams = TaskOwner { streams: Some("mcp-1".to_owned()), ..owner("ada") };
    for other in [owner("eve"), in_old_era, at_streams] {
        assert!(store.find("1", &other).is_err() && store.list(&other).is_empty());
        store.cancel_all(&other);
    }
    assert!(!store.find("1", &owner("ada")).unwrap().status().is_terminal());
    store.cancel_all(&owner("ada"));
    assert!(store.find("1", &owner("ada")).unwrap().status().is_terminal());
}

#[test]
fn a_principal_has_so_many_tasks_and_so_many_bytes_of_results() {
    let store = TaskStore::default();
    for id in 0..MAX_TASKS {
        store.insert(&task(id, "ada")).unwrap();
    }
    let refused = store.insert(&task(1000, "ada")).unwrap_err();
    assert!(refused.message.contains("64 running tasks"), "{}", refused.message);
    store.insert(&task(1001, "bob")).unwrap();
    assert!(!store.has_room(&owner("ada"), MAX_RESULT_BYTES + 1));
    for id in 0..MAX_KEPT_BYTES / MAX_RESULT_BYTES {
        assert!(store.has_room(&owner("ada"), MAX_RESULT_BYTES), "{id}");
        let task = store.find(&id.to_string(), &owner("ada")).unwrap();
        task.end(Ok(().into()), MAX_RESULT_BYTES);
    }
    assert!(!store.has_room(&owner("ada"), 1));
    assert!(store.has_room(&owner("bob"), MAX_RESULT_BYTES));
}

/// The task of this number, which was created in that second.
fn dated_task(id: usize) -> Arc<CallTask> {
    let cancel = LazyCancelToken::default();
    let mut task =
        CallTask::new(id.to_string(), owner("ada"), DEFAULT_TTL, GrantScope::Once, cancel);
    task.created_at = SystemTime::UNIX_EPOCH + Duration::from_secs(id as u64);
    Arc::new(task)
}

#[test]
fn the_oldest_ended_task_makes_room_for_a_new_one() {
    let store = TaskStore::default();
    let tasks: Vec<_> = (0..MAX_TASKS).map(dated_task).collect();
    tasks.iter().for_each(|task| store.insert(task).unwrap());
    // Task 0 runs, and the call of task 1 has not noticed the cancellation yet.
    tasks[1].cancel("it is late");
    for id in [5, 4, 3, 2] {
        tasks[id].end(Ok(true.into()), 4);
    }
    for id in [0, 3, 4] {
        tasks[id].note_result_read();
    }
    let is_kept = |id: usize| store.find(&id.to_string(), &owner("ada")).is_ok();
    for (number, dropped) in [3, 4, 2, 5].into_iter().enumerate() {
        assert!(is_kept(dropped), "{dropped}");
        store.insert(&dated_task(100 + number)).unwrap();
        assert!(!is_kept(dropped), "{dropped}");
        assert_eq!(store.list(&owner("ada")).len(), MAX_TASKS);
    }
    assert!(store.insert(&dated_task(200)).is_err(), "all others run");
    assert!(is_kept(0) && is_kept(1));
    tasks[1].end(Ok(true.into()), 4);
    store.insert(&dated_task(200)).unwrap();
    assert!(is_kept(0) && !is_kept(1));
}

#[test]
fn an_ended_task_does_not_change() {
    let task = task(1, "ada");
    task.cancel("it is late");
    task.end(Ok(true.into()), 4);
    task.set_message("more");
    let json = task.to_detailed_json();
    assert_eq!(json["status"], "cancelled");
    assert_eq!(json.get("result"), None);
    assert_eq!(json["statusMessage"], "it is late");
}

#[test]
fn a_task_is_kept_longer_than_its_call_may_take() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    assert_eq!(task_ttl(None, None), minutes(60));
    assert_eq!(task_ttl(Some(minutes(1)), Some(minutes(2))), minutes(7));
    assert_eq!(task_ttl(None, Some(minutes(90))), minutes(95));
    assert_eq!(task_ttl(Some(Duration::MAX), Some(Duration::MAX)), MAX_TTL);
}
