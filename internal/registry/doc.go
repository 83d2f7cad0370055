// Package registry numbers the keys and origins of one interval and keeps its budgets.
//
// A key that was not met before in the interval is charged: each label to its origin's
// budget, the key itself to the rows and bytes that all origins share. What is over a
// budget collapses before the key is looked up, so that totals survive and names do not.
// A label becomes a number, a key a row of numbers, and two keys are one exactly where
// their numbers are equal. The labels themselves are described in package span.
//
// # Threading
//
// A Registry is written under its lock, by publishers inside the interval's cycles. The
// flush reads what Contents returned, which never changes. A Lookup reads without the lock
// and admits keys that change nothing, so that a flood takes no lock. The sealer alone
// begins an interval, when nobody is inside a cycle of the one before the last.
//
// What a Lookup reads only grows until the interval ends. It relies on these orders of
// publication, each held by the test behind it:
//
//   - A label's text and scope are in the list, and the list is published, before its
//     number is in the hash table (TestALabelIsCompleteBeforeItIsFindable).
//   - A key's words, then its row, are published before its number is in the hash table
//     (TestAKeyIsCompleteBeforeItIsFindable).
//   - A hash table that grows is filled before it is published
//     (TestWhatIsFindableStaysSoWhileTheTableGrows).
//   - The last value of a budget is findable, in the Bloom filter and in the hash table,
//     before the budget's bit is set, and the bits are read before a value is
//     searched for; the last tag of a tag key is findable before
//     the tag key collapses, which is read before the tag is searched for; the last tag key
//     is findable before the bit of its list is set; and what keys without a row get is
//     stored before the bit of the whole key is set
//     (TestALookupBesideTheAdmissionThatUsesUpABudget, the last part of it under -race).
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
// rows and label bytes for all origins, and a reserve that keeps one origin's flood from the
// others' first keys. An interval takes over no memory of an earlier one.
package registry
