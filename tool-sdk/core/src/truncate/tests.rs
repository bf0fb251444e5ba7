//! Which parts of a text are kept, and how the omitted rest is counted.

use proptest::prelude::*;

use super::*;

const ALL: [Truncate; 3] = [Truncate::Head, Truncate::Tail, Truncate::Middle];

/// Truncates `text`; `omitted` is the number of lines of which nothing is kept.
#[track_caller]
fn check(budget: Budget, keep: Truncate, text: &str, head: &str, tail: &str, omitted: usize) {
    let fitted = budget.fit(text, keep).expect("it is too long");
    assert_eq!((fitted.head, fitted.tail, fitted.omitted_lines), (head, tail, omitted));
    assert_eq!(fitted.omitted_bytes, text.len() - head.len() - tail.len());
}

// F94: a text at the limit is not truncated, one more line or byte is.
#[test]
fn the_limits_are_inclusive() {
    let budget = Budget::default();
    for keep in ALL {
        for text in ["x\n".repeat(2000), "x\n".repeat(1999) + "x", "x".repeat(51_200)] {
            assert_eq!(budget.fit(&text, keep), None);
        }
        for text in ["x\n".repeat(2001), "x\n".repeat(2000) + "x", "x".repeat(51_201)] {
            assert!(budget.fit(&text, keep).is_some());
        }
    }
    assert_eq!(budget.fit(&"x\n".repeat(2001), Truncate::None), None);
}

// F45: a token is four bytes, and lines do not count.
#[test]
fn a_token_is_four_bytes() {
    let budget = Budget::tokens(1000);
    assert_eq!(budget.max_bytes(), 4000);
    assert!(budget.admits(&"\n".repeat(4000)) && !budget.admits(&"\n".repeat(4001)));
    assert_eq!(Budget::tokens(usize::MAX).max_bytes(), usize::MAX);
}

// F96: head keeps the first lines, tail the last, middle a fifth and the rest.
#[test]
fn each_direction_keeps_its_end() {
    let text = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n";
    check(Budget::new(2, 99), Truncate::Head, text, "1\n2\n", "", 8);
    check(Budget::new(2, 99), Truncate::Tail, text, "", "9\n10\n", 8);
    check(Budget::new(5, 99), Truncate::Middle, text, "1\n", "7\n8\n9\n10\n", 5);
    check(Budget::new(99, 10), Truncate::Middle, text, "1\n", "8\n9\n10\n", 6);
    check(Budget::new(1, 99), Truncate::Middle, text, "", "10\n", 9);
}

#[test]
fn the_tail_gets_the_rest_of_the_budget() {
    let text = "1\n22\n3\n4\n5\n6\n7\n8\n9\n";
    check(Budget::new(99, 15), Truncate::Middle, text, "1\n", "4\n5\n6\n7\n8\n9\n", 2);
}

#[test]
fn long_lines_are_cut_at_a_character_boundary() {
    let (one, two) = ("ääää", "first\nääää\nlast");
    check(Budget::new(9, 5), Truncate::Head, one, "ää", "", 0);
    check(Budget::new(9, 5), Truncate::Tail, one, "", "ää", 0);
    check(Budget::new(9, 7), Truncate::Middle, one, "", "äää", 0);
    check(Budget::new(9, 8), Truncate::Head, two, "first\nä", "", 1);
    check(Budget::new(9, 8), Truncate::Tail, two, "", "ä\nlast", 1);
    check(Budget::new(9, 6), Truncate::Head, "🦀🦀", "🦀", "", 0);
    check(Budget::new(9, 6), Truncate::Tail, "🦀🦀", "", "🦀", 0);
}

#[test]
fn keeps_more_than_a_short_line_before_a_long_one() {
    let text = format!("\n{}\n", "x".repeat(100));
    check(Budget::new(9, 5), Truncate::Head, &text, "\nxxxx", "", 0);
    check(Budget::new(9, 5), Truncate::Tail, &text, "", "xxxx\n", 1);
}

// F99: the counts are exact.
#[test]
fn lines_are_counted_exactly() {
    let fitted = Budget::new(1, 99).fit("a\nb\nc", Truncate::Head).unwrap();
    assert_eq!((fitted.original_lines, fitted.omitted_lines, fitted.omitted_bytes), (3, 2, 3));
    let whole = FittedText::keep_all("a\nb");
    assert_eq!((whole.head, whole.original_lines, whole.omitted_lines), ("a\nb", 2, 0));
}

/// Counts the lines of which at least a part is kept.
fn lines_kept(text: &str, head: usize, tail: usize) -> usize {
    let mut end = 0;
    let kept = |line: &&str| {
        let start = end;
        end += line.len();
        start < head || end > text.len() - tail
    };
    text.split_inclusive('\n').filter(kept).count()
}

proptest! {
    #[test]
    fn kept_parts_fit_and_come_from_the_ends(
        text in "[a-zä🦀\n]{0,200}", lines in 1_usize..20, bytes in 20_usize..100,
    ) {
        for keep in ALL {
            let Some(fitted) = Budget::new(lines, bytes).fit(&text, keep) else {
                prop_assert!(text.len() <= bytes && count_lines(&text) <= lines);
                continue;
            };
            let (head, tail) = (fitted.head, fitted.tail);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            prop_assert!(!head.is_empty() || !tail.is_empty());
            prop_assert!(head.len() + tail.len() <= bytes);
            prop_assert!(count_lines(head) + count_lines(tail) <= lines);
            prop_assert_eq!(head.len() + tail.len() + fitted.omitted_bytes, text.len());
            let kept = lines_kept(&text, head.len(), tail.len());
            prop_assert_eq!(fitted.original_lines, kept + fitted.omitted_lines);
        }
    }
}
