//! Where keys and values live: pages of slots, owned by segments.
//!
//! The tensors are the model's; this file only decides which token goes into which slot. A segment
//! owns whole pages, and a segment that continues from others holds a reference to them. A fork is
//! so a few segments with the same parent and a join one segment with several parents: nothing is
//! copied and nothing is read again. A page is free once its segment has neither a holder nor a
//! descendant.
//!
//! A sample reserves the most it can ever need before it starts, so no sample runs out of room.

use std::collections::BTreeMap;

pub(super) use crate::kernels::PAGE;

/// Pages that `tokens` fill.
pub(super) fn pages_for(tokens: usize) -> usize {
    tokens.div_ceil(PAGE)
}

/// A segment in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(usize);

#[derive(Debug, Default)]
struct Entry {
    pages: Vec<usize>,
    len: usize,
    parents: Vec<Key>,
    /// Holders and children.
    references: usize,
}

/// The page table.
#[derive(Debug)]
pub(super) struct Cache {
    /// Free runs of pages: first page -> number of pages; neighbours are always merged.
    free: BTreeMap<usize, usize>,
    entries: Vec<Entry>,
    unused: Vec<usize>,
    pages: usize,
    reserved: usize,
}

impl Cache {
    /// A table of `pages` free pages.
    pub(super) fn new(pages: usize) -> Self {
        let free = if pages == 0 { BTreeMap::new() } else { BTreeMap::from([(0, pages)]) };
        Self { free, entries: Vec::new(), unused: Vec::new(), pages, reserved: 0 }
    }

    /// Sets `pages` aside, or says that there is no room for them now.
    pub(super) fn reserve(&mut self, pages: usize) -> bool {
        let fits = self.reserved + pages <= self.pages;
        if fits {
            self.reserved += pages;
        }
        fits
    }

    /// Gives a reservation back.
    pub(super) fn unreserve(&mut self, pages: usize) {
        debug_assert!(pages <= self.reserved, "more pages given back than reserved");
        self.reserved -= pages;
    }

    /// Whether nothing is owned or reserved.
    pub(super) fn is_empty(&self) -> bool {
        self.reserved == 0 && self.free_pages() == self.pages
    }

    /// Pages that no segment owns.
    fn free_pages(&self) -> usize {
        self.free.values().sum()
    }

    /// Opens an empty segment below `parents`; the caller holds it until [`Cache::release`].
    pub(super) fn open(&mut self, parents: &[Key]) -> Key {
        for parent in parents {
            self.entries[parent.0].references += 1;
        }
        let entry = Entry { parents: parents.to_vec(), references: 1, ..Entry::default() };
        match self.unused.pop() {
            Some(index) => {
                self.entries[index] = entry;
                Key(index)
            }
            None => {
                self.entries.push(entry);
                Key(self.entries.len() - 1)
            }
        }
    }

    /// The slot of the segment's next token.
    pub(super) fn append(&mut self, key: Key) -> usize {
        let entry = &self.entries[key.0];
        let (len, last) = (entry.len, entry.pages.last().copied());
        let page = match last {
            Some(page) if !len.is_multiple_of(PAGE) => page,
            last => {
                let page = self.take_page(last);
                self.entries[key.0].pages.push(page);
                page
            }
        };
        self.entries[key.0].len += 1;
        page * PAGE + len % PAGE
    }

    /// Ends one hold on a segment. Pages that nobody can need any more become free.
    pub(super) fn release(&mut self, key: Key) {
        let mut ending = vec![key];
        while let Some(key) = ending.pop() {
            let entry = &mut self.entries[key.0];
            entry.references -= 1;
            if entry.references == 0 {
                let Entry { pages, parents, .. } = std::mem::take(entry);
                pages.into_iter().for_each(|page| self.give_page(page));
                ending.extend(parents);
                self.unused.push(key.0);
            }
        }
    }

    /// A page for a segment whose last one is `last`: its neighbour if that is free, so that long
    /// segments stay in one piece; else the middle of the longest free run, so that both the new
    /// segment and the one in front of the run have room to grow.
    fn take_page(&mut self, last: Option<usize>) -> usize {
        if let Some(next) = last.map(|page| page + 1)
            && let Some(len) = self.free.remove(&next)
        {
            self.insert_run(next + 1, len - 1);
            return next;
        }
        let longest = self.free.iter().max_by_key(|&(&first, &len)| (len, usize::MAX - first));
        let (&first, &len) = longest.expect("samples reserve their pages before they start");
        let before = if first == 0 { 0 } else { len / 2 };
        self.free.remove(&first);
        self.insert_run(first, before);
        self.insert_run(first + before + 1, len - before - 1);
        first + before
    }

    fn give_page(&mut self, page: usize) {
        let (mut first, mut len) = (page, 1);
        if let Some(after) = self.free.remove(&(page + 1)) {
            len += after;
        }
        if let Some((&start, &before)) = self.free.range(..page).next_back()
            && start + before == page
        {
            (first, len) = (start, before + len);
        }
        self.free.insert(first, len);
    }

    fn insert_run(&mut self, first: usize, len: usize) {
        if len > 0 {
            self.free.insert(first, len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fill(cache: &mut Cache, key: Key, tokens: usize) -> Vec<usize> {
        (0..tokens).map(|_| cache.append(key)).collect()
    }

    #[test]
    fn a_lone_segment_is_one_run_of_slots() {
        let mut cache = Cache::new(8);
        let key = cache.open(&[]);
        assert_eq!(fill(&mut cache, key, 100), (0..100).collect::<Vec<_>>());
        assert_eq!(cache.free_pages(), 1);
    }

    #[test]
    fn pages_stay_while_a_descendant_can_need_them() {
        let mut cache = Cache::new(8);
        let trunk = cache.open(&[]);
        fill(&mut cache, trunk, 17);
        let paths = [cache.open(&[trunk]), cache.open(&[trunk])];
        cache.release(trunk);
        paths.iter().for_each(|&path| drop(fill(&mut cache, path, 3)));
        let join = cache.open(&paths);
        paths.iter().for_each(|&path| cache.release(path));
        fill(&mut cache, join, 1);
        assert_eq!(cache.free_pages(), 3, "two of the trunk, one a path, one of the join");
        cache.release(join);
        assert_eq!(cache.free_pages(), 8);
        assert_eq!(cache.free, BTreeMap::from([(0, 8)]), "free runs are merged");
    }

    #[test]
    fn children_start_on_new_pages() {
        let mut cache = Cache::new(4);
        let trunk = cache.open(&[]);
        let own = fill(&mut cache, trunk, 3);
        let child = cache.open(&[trunk]);
        assert_ne!(own[0] / PAGE, cache.append(child) / PAGE);
    }

    #[test]
    fn reservations_bound_what_is_admitted() {
        let mut cache = Cache::new(4);
        assert!(cache.reserve(3));
        assert!(!cache.reserve(2));
        cache.unreserve(3);
        assert!(cache.reserve(4));
    }

    proptest! {
        #[test]
        fn no_two_tokens_share_a_slot(steps in prop::collection::vec((0..6usize, 0..40usize), 1..60)) {
            let mut cache = Cache::new(256);
            let mut open: Vec<(Key, Vec<usize>)> = Vec::new();
            for (action, size) in steps {
                if action == 0 && !open.is_empty() {
                    let (key, _) = open.swap_remove(size % open.len());
                    cache.release(key);
                } else if open.len() < 16 {
                    let key = cache.open(&[]);
                    let slots = fill(&mut cache, key, size);
                    open.push((key, slots));
                }
                let mut slots: Vec<usize> = open.iter().flat_map(|(_, s)| s.clone()).collect();
                let count = slots.len();
                slots.sort_unstable();
                slots.dedup();
                prop_assert_eq!(slots.len(), count);
                let pages: usize = open.iter().map(|(_, s)| pages_for(s.len())).sum();
                prop_assert_eq!(cache.free_pages(), 256 - pages);
            }
        }
    }
}
