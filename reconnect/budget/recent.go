package budget

import "time"

// parts is how many parts the recent past has. Outcomes that are older leave
// it a part at a time.
const parts = 20

// recent counts outcomes of the recent past.
type recent struct {
	width  time.Duration // of a part
	slots  [parts]outcomes
	began  time.Time // the time of the first outcome, from which parts are counted by the monotonic clock
	newest int64     // the number of the part that is being filled
	sum    outcomes
}

type outcomes struct{ failed, total int }

func newRecent(length time.Duration) recent {
	return recent{width: max(length/parts, 1)}
}

// record counts one outcome.
func (w *recent) record(now time.Time, failed bool) {
	w.advance(now)
	slot := &w.slots[w.newest%parts]
	slot.total++
	w.sum.total++
	if failed {
		slot.failed++
		w.sum.failed++
	}
}

// advance drops the outcomes that are too old.
func (w *recent) advance(now time.Time) {
	if w.began.IsZero() {
		w.began = now
	}
	n := int64(now.Sub(w.began) / w.width)
	if n-w.newest >= parts {
		w.clear()
		w.newest = n
	}
	for w.newest < n {
		w.newest++
		slot := &w.slots[w.newest%parts]
		w.sum.total -= slot.total
		w.sum.failed -= slot.failed
		*slot = outcomes{}
	}
}

func (w *recent) clear() {
	w.slots, w.sum = [parts]outcomes{}, outcomes{}
}

// share returns the share of failures among the outcomes, from 0 to 1.
func (t outcomes) share() float64 {
	if t.total == 0 {
		return 0
	}
	return float64(t.failed) / float64(t.total)
}
