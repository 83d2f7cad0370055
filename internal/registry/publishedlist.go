package registry

import (
	"sync/atomic"
	"unsafe"
)

// publishedList is a list that grows under its owner's lock and is read without it.
// Items that were appended don't move out of sight: a list that had to be copied to a
// larger place is published whole, and readers of the earlier place still find there
// what they look for. A reader asks only for items whose number it was told by an atomic
// store that came after append returned.
type publishedList[T any] struct {
	items     []T                 // the writer's
	published atomic.Pointer[[]T] // the same with all its capacity, for readers
}

func (l *publishedList[T]) append(items ...T) {
	l.items = append(l.items, items...)
	if now := l.published.Load(); now == nil || unsafe.SliceData(*now) != unsafe.SliceData(l.items) {
		place := l.items[:cap(l.items)]
		l.published.Store(&place)
	}
}

func (l *publishedList[T]) at(number uint32) *T { return &(*l.published.Load())[number] }

func (l *publishedList[T]) part(from, to uint32) []T { return (*l.published.Load())[from:to] }
