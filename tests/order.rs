//! Data flows one way: a module of the library uses only itself and modules above it in this list.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The modules in the order of the flow; some are still to come.
const ORDER: [&str; 12] = [
    "data",
    "prompt",
    "layout",
    "kernels",
    "model",
    "engine",
    "reward",
    "eval",
    "cluster",
    "train",
    "study",
    "cold_start",
];

fn rank(module: &str) -> Option<usize> {
    ORDER.iter().position(|&m| m == module)
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// The code of a file without comments and without what is compiled for its tests, and the names of the modules
/// that are. Tests stand last in their file, so an inline test module ends it.
fn code(text: &str) -> (String, Vec<String>) {
    let (mut kept, mut test_modules) = (String::new(), Vec::new());
    let mut lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
            kept.push('\n');
            continue;
        }
        let item = lines.by_ref().find(|line| !line.trim_start().starts_with("#[")).unwrap_or_default();
        match item.trim().strip_prefix("mod ").and_then(|module| module.strip_suffix(';')) {
            Some(module) => test_modules.push(module.to_owned()),
            None if item.contains("mod ") => break,
            // A test-only item: its first line is enough to leave out.
            None => {}
        }
    }
    (kept, test_modules)
}

/// The modules that a text names after `crate::`, in plain paths and in groups.
fn used(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut add = |path: &str| {
        let name: String =
            path.trim_start().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        found.insert(name);
    };
    for path in code.split("crate::").skip(1) {
        match path.strip_prefix('{') {
            None => add(path),
            Some(group) => {
                let mut depth = 0;
                let mut parts = vec![String::new()];
                for c in group.chars() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => parts.push(String::new()),
                        _ => {}
                    }
                    parts.last_mut().unwrap().push(c);
                }
                parts.iter().map(|part| part.trim_start_matches(',')).for_each(&mut add);
            }
        }
    }
    found.remove("");
    found
}

#[test]
fn a_module_uses_only_modules_above_it() {
    let mut all = Vec::new();
    files(&source(), &mut all);
    let texts: Vec<(PathBuf, String, Vec<String>)> = all
        .into_iter()
        .map(|path| {
            let (kept, tests) = code(&std::fs::read_to_string(&path).unwrap());
            (path, kept, tests)
        })
        .collect();
    // `mod x;` in F/mod.rs or in F.rs is the file F/x.rs.
    let home = |path: &Path| match path.file_name() {
        Some(name) if name == "mod.rs" || name == "lib.rs" => path.parent().unwrap().to_owned(),
        _ => path.with_extension(""),
    };
    let tests: BTreeSet<PathBuf> = texts
        .iter()
        .flat_map(|(path, _, tests)| tests.iter().map(|m| home(path).join(format!("{m}.rs"))))
        .collect();
    let (mut wrong, mut uses) = (Vec::new(), 0);
    for (path, kept, _) in texts.iter().filter(|(path, ..)| !tests.contains(path)) {
        let inside = path.strip_prefix(source()).unwrap();
        let module = inside.iter().next().unwrap().to_string_lossy().replace(".rs", "");
        if module == "lib" {
            continue;
        }
        let Some(own) = rank(&module) else {
            wrong.push(format!("{}: `{module}` is not in the order", inside.display()));
            continue;
        };
        for other in used(kept) {
            uses += usize::from(other != module);
            if rank(&other).is_none_or(|other| other > own) {
                wrong.push(format!("{}: uses `{other}`", inside.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "against the flow:\n{}", wrong.join("\n"));
    assert!(uses > 20, "only {uses} uses found, so the search is broken");
}

#[test]
fn the_library_lists_its_modules_in_that_order() {
    let text = std::fs::read_to_string(source().join("lib.rs")).unwrap();
    let modules: Vec<&str> =
        text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';')).collect();
    let ranks: Vec<usize> = modules.iter().filter_map(|module| rank(module)).collect();
    assert_eq!(ranks.len(), modules.len(), "a module of {modules:?} is not in the order");
    assert!(ranks.is_sorted() && ranks.len() > 5, "out of order: {modules:?}");
}

#[test]
fn uses_are_found_in_paths_and_groups_but_not_in_comments_and_tests() {
    let text = "use crate::a::b;\n// crate::x\nuse crate::{c::{self, d}, e};\nlet _ = crate::f();\n\
                #[cfg(test)]\nmod oracle;\n#[cfg(test)]\nmod tests {\nuse crate::y;\n}\n";
    let (kept, tests) = code(text);
    assert_eq!(used(&kept), ["a", "c", "e", "f"].map(String::from).into());
    assert_eq!(tests, ["oracle"]);
}
