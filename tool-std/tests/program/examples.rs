//! The examples in the definitions of the tools, run as commands.

use super::{err, json, run, run_in};

/// A folder with the files that the examples need.
fn example_folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("src")).expect("a folder in it");
    let program = "fn main() {}\n".repeat(200);
    std::fs::write(folder.path().join("src/main.rs"), program).expect("a file in it");
    folder
}

#[test]
fn every_example_is_a_command_that_works() {
    let listed = json(&run(&["list", "--json"]));
    let names: Vec<&str> = listed
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|tool| tool["name"].as_str())
        .collect();
    // Only with the feature `code`.
    let code_tools =
        ["find_definition", "find_references", "get_repo_map", "list_symbols", "search_code"];
    let code_tools = code_tools.into_iter().filter(|_| cfg!(feature = "code"));
    let standard = [
        "apply_patch",
        "ask_clarification",
        "check_env_vars",
        "debug_mcp_server",
        "edit_file",
        "exec_command",
        "get_env_var",
        "glob_files",
        "grep_files",
        "kill_session",
        "list_dir",
        "list_sessions",
        "mcp_prompt_get",
        "mcp_resource_list",
        "mcp_resource_read",
        "memory_create",
        "memory_delete",
        "memory_get",
        "memory_search",
        "memory_update",
        "mutation_begin",
        "mutation_record",
        "mutation_status",
        "plan_enter",
        "plan_exit",
        "plan_update",
        "plugin_manager",
        "read_file",
        "register_mcp_server",
        "request_decision",
        "request_env_var",
        "skill",
        "skill_create",
        "skill_install",
        "skill_list",
        "skill_remove",
        "skill_update",
        "todo_read",
        "todo_write",
        "tool_search",
        "update_plan",
        "web_fetch",
        "write_file",
        "write_stdin",
    ];
    let mut expected: Vec<&str> = standard.into_iter().chain(code_tools).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
    for name in names {
        let definition = json(&run(&["show", name, "--json"]));
        let codes: &[i32] = match name {
            // Sessions end with the program that started them; the next program does not know them.
            "kill_session" | "write_stdin" => &[1],
            // The folder is not a repository.
            "exec_command" => &[0, 1],
            // The server of the example may not be installed.
            "register_mcp_server" => &[0, 1],
            // No user can be asked here.
            "ask_clarification" | "request_decision" | "request_env_var" => &[1],
            // It is not set.
            "get_env_var" => &[1],
            // There is no such file and no such skill here.
            "skill_install" | "skill_update" => &[1],
            "plugin_manager" => &[0, 1],
            // Its host is outside of this machine; the rule below denies it.
            "web_fetch" => &[3],
            // No server is configured here.
            "mcp_prompt_get" | "mcp_resource_read" => &[1],
            _ => &[0],
        };
        for example in definition["examples"].as_array().into_iter().flatten() {
            let folder = example_folder();
            let example = example.as_str().expect("a text");
            let output =
                run_in(folder.path(), &["--yes", "--deny=web_fetch", "call", name, example]);
            let code = output.status.code().expect("a program that ends by itself");
            assert!(codes.contains(&code), "{name} {example}: {code}: {}", err(&output));
        }
    }
}
