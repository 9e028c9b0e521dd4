//go:build !js

package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// record is one session.
type record struct {
	n        uint64
	downtime time.Duration // since the last ready session ended
	up       bool          // the session became ready
	ready    time.Duration // how long it was ready
	messages int
	gaps     int    // with books: gaps that a snapshot has closed; without: 1 if a seam followed
	missed   uint64 // updates in those gaps
	resyncs  int
	end      string // why the session ended
}

// table prints the sessions. Call it after close.
func (j *journal) table(out io.Writer) {
	j.mu.Lock()
	defer j.mu.Unlock()
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	defer w.Flush()
	row := func(name string, r *record, end string) {
		downtime, ready := "-", "never"
		if r.up {
			downtime, ready = round(r.downtime).String(), round(r.ready).String()
		}
		missed, resyncs := "-", "-"
		if j.audit != nil {
			missed, resyncs = fmt.Sprint(r.missed), fmt.Sprint(r.resyncs)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%d\t%s\t%s\t  %s\n",
			name, downtime, ready, r.messages, r.gaps, missed, resyncs, end)
	}
	fmt.Fprintln(w, "session\tdowntime\tready\tmessages\tgaps\tmissed\tresyncs\t  ended by")
	sum := j.earlier
	if j.forgot > 0 {
		row("earlier", &j.earlier, "("+plural(j.forgot, "session")+")")
	}
	for _, r := range j.sessions {
		row(fmt.Sprint(r.n), r, short(r.end, 60))
		sum.add(r)
	}
	row("all", &sum, fmt.Sprintf("%s in %v", plural(j.forgot+len(j.sessions), "session"), round(time.Since(j.start))))
}

func (r *record) add(s *record) {
	if s.up { // if not, the downtime of the next session includes that of this one
		r.up = true
		r.downtime += s.downtime
		r.ready += s.ready
	}
	r.messages += s.messages
	r.gaps += s.gaps
	r.missed += s.missed
	r.resyncs += s.resyncs
}

// round rounds d to what is worth printing.
func round(d time.Duration) time.Duration {
	if d >= 10*time.Millisecond {
		return d.Round(time.Millisecond)
	}
	return d.Round(10 * time.Microsecond)
}

// short cuts s to limit characters.
func short(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-3]) + "..."
	}
	return s
}

// plural formats a number of things.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
