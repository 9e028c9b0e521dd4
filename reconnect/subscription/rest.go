package subscription

import (
	"container/list"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/redial-go/redial/reconnect/backoff"
)

// rest has the rejected keys that wait for their next request. Those that were rejected with the same error form a
// group, which is probed by one request at a time: the longer it is refused, the more rarely. A rest has no clock
// and no lock. The Set's mu guards it.
type rest[K comparable] struct {
	batch  int                  // Options.Batch
	groups map[string]*group[K] // by error
	next   time.Time            // of the next probe, except of a key alone in its group
}

// group has the keys that were rejected with the same error.
type group[K comparable] struct {
	name  string
	keys  list.List     // of *entry[K]: those that rest, the longest first
	probe []*entry[K]   // the keys requested last
	size  int           // keys of the next probe
	named bool          // the venue names the refused keys of a request
	won   bool          // the venue has agreed to a key of the probe
	wait  time.Duration // of the key that was rejected last, by Options.Backoff
	since time.Time     // of the first rejection since the venue has agreed to a key
	due   time.Time     // of the next probe
	hold  time.Time     // no probe before, because the venue says so
}

const (
	// maxRest is the time in which each of up to maxRest / probePace keys of the Set is requested, however long
	// they are refused.
	maxRest = 30 * time.Minute

	// probePace is the mean time between two probes of the Set, except of keys that are alone in their group.
	probePace = 850 * time.Millisecond

	// maxGroups is the number of errors that have a group each. All others share one.
	maxGroups = 8
)

// reason returns the name of the group of a rejected request for k: its error, without k as a word.
func reason[K comparable](op Op, k K, err error) string {
	text, key := err.Error(), fmt.Sprint(k)
	parts := []string{op.String()}
	inWord := func(r rune, size int) bool { return size > 0 && (unicode.IsLetter(r) || unicode.IsDigit(r)) }
	for at := 0; key != ""; {
		i := strings.Index(text[at:], key)
		if i < 0 {
			break
		}
		begin, end := at+i, at+i+len(key)
		if !inWord(utf8.DecodeLastRuneInString(text[:begin])) && !inWord(utf8.DecodeRuneInString(text[end:])) {
			parts, text, at = append(parts, text[:begin]), text[end:], 0
		} else {
			at = begin + 1
		}
	}
	return strings.Join(append(parts, text), "\x00")
}

// find returns the group with this name, which is made if there is none.
func (s *rest[K]) find(name string, now time.Time) *group[K] {
	if s.groups[name] == nil && len(s.groups) >= maxGroups {
		name = ""
	}
	g := s.groups[name]
	if g == nil {
		g = &group[K]{name: name, size: 1, since: now}
		s.groups[name] = g
	}
	return g
}

// lay has e rest in g. wait is the wait by Options.Backoff, to which the venue has added least. named is
// whether the venue has named e among the keys of a request. The caller changes e.
func (s *rest[K]) lay(e *entry[K], g *group[K], wait, least time.Duration, named bool, now time.Time) {
	if known := s.groups[g.name]; known != nil {
		g = known
	} else { // it had no keys for a while
		s.groups[g.name] = g
	}
	other := time.Time{}
	if e.group != g {
		if e.rests() { // because of another session
			other = e.group.due
		}
		e.rise()
	}
	probed := e.group == g && !e.rests()
	if !e.rests() {
		e.group, e.resting = g, g.keys.PushBack(e)
	}
	g.wait = wait
	if named {
		g.named, g.size = true, s.batch
	}
	if hold := now.Add(least); hold.After(g.hold) {
		g.hold = hold
	}
	due := now.Add(s.gap(g, now) + least)
	if due.Before(other) {
		due = other
	}
	switch {
	case probed && g.won:
		g.due = now
	case probed:
		if g.due = due; !g.named {
			g.size = 1
		}
	case g.due.IsZero(), g.members() == 1, least > 0 && due.After(g.due), !other.IsZero() && due.After(g.due):
		g.due = due
	}
}

// gap returns the time between two probes of g: for a key alone its wait, else such that each key is requested
// in that time or, if longer, in a quarter of the time for which all were refused, but not in more than
// maxRest.
func (s *rest[K]) gap(g *group[K], now time.Time) time.Duration {
	n := g.members()
	if n <= 1 {
		return g.wait
	}
	each := max(g.wait, min(now.Sub(g.since)/4, maxRest))
	probes := (n + g.size - 1) / g.size
	return jitter(each / time.Duration(probes))
}

// jitter returns a time between 0.8 d and d.
func jitter(d time.Duration) time.Duration { return backoff.Uniform(backoff.Rand(), d*4/5, d) }

// members returns how many keys g has.
func (g *group[K]) members() int {
	n := g.keys.Len()
	for _, e := range g.probe {
		if e.probedFor(g) {
			n++
		}
	}
	return n
}

// probing reports whether a key of the last probe is still requested.
func (g *group[K]) probing() bool {
	return slices.ContainsFunc(g.probe, func(e *entry[K]) bool { return e.probedFor(g) })
}

// probedFor reports whether a session requests e for g, or is about to, or OnReject is to decide about it.
func (e *entry[K]) probedFor(g *group[K]) bool {
	return e.group == g && !e.rests() && (e.trouble != nil && e.trouble.judging ||
		slices.ContainsFunc(e.at[:], func(p place[K]) bool { return p.request != nil || p.op != 0 }))
}

// rise takes e out of its group.
func (e *entry[K]) rise() {
	if e.rests() {
		e.group.keys.Remove(e.resting)
	}
	e.group, e.resting = nil, nil
}

// agreed notes that the venue has agreed to e. If e was probed, more keys of its group are requested immediately.
func (s *rest[K]) agreed(e *entry[K], now time.Time) {
	g := e.group
	if g == nil {
		return
	}
	probed := !e.rests() && slices.Contains(g.probe, e)
	e.rise()
	if !probed {
		return
	}
	g.won, g.since = true, now
	if !g.probing() {
		g.size, g.due = min(2*g.size, s.batch), now
	}
}

// refused returns the keys of a probe, which the venue has refused as a whole, to their groups. It reports
// false for keys that were not probed. The caller changes e by do.
func (s *rest[K]) refused(list []*entry[K], now time.Time, do func(e *entry[K], f func())) bool {
	if slices.ContainsFunc(list, func(e *entry[K]) bool { return e.group == nil || e.rests() }) {
		return false
	}
	for _, e := range list {
		g := e.group
		g.named, g.won = false, false
		do(e, func() {
			e.most = 1
			s.lay(e, g, g.wait, 0, false, now)
		})
	}
	return true
}

// due returns when the next group is to be probed, or the zero time.
func (s *rest[K]) due() (at time.Time) {
	for _, g := range s.groups {
		at = earlier(at, s.dueOf(g))
	}
	return at
}

// dueOf returns when g is to be probed, or the zero time.
func (s *rest[K]) dueOf(g *group[K]) time.Time {
	if g.keys.Len() == 0 || g.probing() {
		return time.Time{}
	}
	due := g.due
	if g.keys.Len() > 1 && !g.won && due.Before(s.next) {
		due = s.next
	}
	if due.Before(g.hold) {
		due = g.hold
	}
	return due
}

// probe returns the keys to request now, in one request if possible, and makes e.most of each their number by the
// size of the probe. It returns none if no group is due.
func (s *rest[K]) probe(now time.Time) (list []*entry[K], size int) {
	maps.DeleteFunc(s.groups, func(_ string, g *group[K]) bool { return g.keys.Len() == 0 && !g.probing() })
	var g *group[K] // the one that has been due for longest
	for _, other := range s.groups {
		if due := s.dueOf(other); !due.IsZero() && !now.Before(due) && (g == nil || other.due.Before(g.due)) {
			g = other
		}
	}
	if g == nil {
		return nil, 0
	}
	if g.keys.Len() > 1 {
		s.next = now.Add(jitter(probePace * 10 / 9))
	}
	g.due, g.won, g.probe = now.Add(s.gap(g, now)), false, nil
	for len(g.probe) < g.size && g.keys.Len() > 0 {
		g.probe = append(g.probe, g.keys.Remove(g.keys.Front()).(*entry[K]))
	}
	return g.probe, g.size
}
