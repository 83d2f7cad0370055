// Package registry numbers the keys and origins of one interval and keeps its budgets.
//
// A key that was not met before in the interval is judged: each label by its origin's
// budget, the key itself by the rows and bytes that all origins share. What does not pass the
// gate before a budget collapses before the key is looked up, so that totals survive and
// names do not. A label becomes a number, a key a row of numbers and the HTTP status, which
// has a budget too, and two keys are one exactly where these are equal. The labels
// themselves are described in package span.
//
// # What repeats wins
//
// A gate (gates.go) asks how well a value is known (sights.go): whether it came before in
// this interval, or in the last, or had a place there and came twice. For the last kind its
// place is kept, exactly: the interval before leaves a set of hashes (past.go), made of what
// was marked (marks.go) when it came again. What has no place is remembered in a Bloom filter
// and waits: it is counted under the key that it collapses into until it passes. Rows are
// such a budget too, with a share for each origin (shares.go).
//
// One place decides (judge.go), with the lock and without. It searches for all labels of a
// key before it looks at the sights of those that have no number (passing.go), and at none
// where a gate is shut, as it is once all that repeated are back and there is no room for more.
// What will collapse in any case it leaves unmended (mending.go).
//
// # Threading
//
// A Registry is written under its lock, by publishers inside the interval's cycles. The
// flush reads what Contents returned, which never changes. A Lookup reads without the lock
// and admits keys that change nothing, so that a flood takes no lock. The sealer alone
// begins an interval, when nobody is inside a cycle of the one before the last.
//
// What a Lookup reads only grows until the interval ends, so what has a number has it in the
// next key too, and is not searched for where the publisher knows that it is the same. It
// relies on these orders of publication, each held by the test behind it:
//
//   - A label's text and scope are in the list, and the list is published, before its
//     number is in the hash table (TestALabelIsCompleteBeforeItIsFindable).
//   - A key's words, then its row, are published before its number is in the hash table
//     (TestAKeyIsCompleteBeforeItIsFindable).
//   - A hash table that grows is filled before it is published
//     (TestWhatIsFindableStaysSoWhileTheTableGrows).
//   - The last value that passes a gate is findable, in the Bloom filter and in the hash
//     table, before the gate rises, and the gates are read before a value is searched for;
//     so it is with the last tag and the gate of its tag key, with the last tag key, and with
//     the last value that a place was kept for, which may shut a gate; and what keys without a row get is stored before the gate of rows rises
//     (TestALookupBesideTheAdmissionThatUsesUpABudget, the last part of it under -race).
//   - There is room for the mark of a label or row before its number is told
//     (TestMarksAreKeptWhileTheListGrows).
//
// What an interval leaves to the next is made by the sealer, under the lock, and never
// changes. Marks and sights are set without the lock, by atomic operations that only add; one
// that comes too late for the next interval is a sight less.
//
// That a Lookup says what Registry.Admit would have said is held by
// TestALookupSaysWhatAdmitSays and TestALookupSaysOfFloodsWhatAdmitSays.
//
// # Bounds
//
// An origin that finds no room, or whose process has half of all origins, has the common
// origin, which is one more than Config.MaxOrigins and has the room of one.
//
// Config.Bytes is the most that the registries come to hold, known before the first key:
// rows and label bytes for all origins, a reserve for those below their fair share, and two
// generations of sights. A wrong answer of the sights costs one of the places that nothing
// which repeated needs.
package registry
