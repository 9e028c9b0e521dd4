package rotate_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/redial-go/redial/reconnect"
)

// numberLog is what a reader has got from a numberServer.
type numberLog struct {
	entries []numberEntry
	process string // of the last number
}

// numberEntry is a number, or a seam.
type numberEntry struct {
	session uint64
	number  int
	seam    *reconnect.Seam
}

// add notes what Read has returned. Other errors than seams are returned.
func (l *numberLog) add(m reconnect.Message, err error) error {
	e := numberEntry{session: m.Session}
	if errors.As(err, &e.seam) {
		e.session = e.seam.Session
	} else if err != nil {
		return err
	} else if string(m.Data) == "welcome" {
		return nil
	} else if _, err := fmt.Sscan(string(m.Data), &e.number, &l.process); err != nil && e.number == 0 {
		return fmt.Errorf("%q is no number", m.Data)
	}
	l.entries = append(l.entries, e)
	return nil
}

// String is the log in short: "1:1-9 (planned) 2:8-20" is numbers by session 1, a seam, and
// numbers by session 2.
func (l *numberLog) String() string {
	var b strings.Builder
	for i := 0; i < len(l.entries); i++ {
		e := l.entries[i]
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if e.seam != nil {
			fmt.Fprintf(&b, "(%s)", seamWords(e.seam))
			continue
		}
		last := e
		for i+1 < len(l.entries) && l.entries[i+1] == (numberEntry{session: e.session, number: last.number + 1}) {
			i++
			last = l.entries[i]
		}
		if fmt.Fprintf(&b, "%d:%d", e.session, e.number); last != e {
			fmt.Fprintf(&b, "-%d", last.number)
		}
	}
	return b.String()
}

// seamWords is what a seam says.
func seamWords(s *reconnect.Seam) string {
	words := []string{s.Reason.String()}
	for _, w := range []struct {
		is   bool
		word string
	}{{s.Planned, "planned"}, {s.Overlapped, "overlapped"}, {s.Resumed, "resumed"}} {
		if w.is {
			words = append(words, w.word)
		}
	}
	return strings.Join(words, " ")
}

// session returns the session of the last entry.
func (l *numberLog) session() uint64 { return l.entries[len(l.entries)-1].session }

// seams returns the seams, in order.
func (l *numberLog) seams() (all []*reconnect.Seam) {
	for _, e := range l.entries {
		if e.seam != nil {
			all = append(all, e.seam)
		}
	}
	return all
}

// missing returns the numbers between the first and the last that did not come.
func (l *numberLog) missing() (none []int) {
	var got []int
	for _, e := range l.entries {
		if e.seam == nil {
			got = append(got, e.number)
		}
	}
	slices.SortFunc(got, cmp.Compare[int])
	for i := 1; i < len(got); i++ {
		for n := got[i-1] + 1; n < got[i]; n++ {
			none = append(none, n)
		}
	}
	return none
}
