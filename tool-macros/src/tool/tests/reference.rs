//! The documentation of the attributes names every item that they accept.

use crate::attr::AttrKey;
use crate::tool::{display, lower, param};

#[test]
fn documentation_lists_every_item() {
    let text = include_str!("../../../docs/tool.md");
    let check = |keys: &[AttrKey], prefix: &str| {
        for key in keys.iter().filter(|key| key.is_written()) {
            let forms = ["`", " =", "("].map(|end| format!("`{prefix}{}{end}", key.name()));
            assert!(forms.iter().any(|form| text.contains(form)), "`{prefix}{}`", key.name());
        }
    };
    let lists = ["approval", "display"];
    let plain = lower::KEYS.iter().filter(|key| !lists.contains(&key.name()));
    for key in plain {
        check(std::slice::from_ref(key), "");
    }
    check(display::APPROVAL, "approval(");
    check(display::DISPLAY, "display(");
    check(param::KEYS, "");
}
