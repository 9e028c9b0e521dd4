//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// drill lets the venue misbehave, one thing after the other, and finds out
// whether the client survives. Nothing in it depends on how fast things are: each step
// waits for what it wants to see, up to a limit.
type drill struct {
	venue   *venue
	client  *client
	results []result
}

// misbehaviour is one step of the drill.
type misbehaviour struct {
	fault fault
	begin func() bool      // does it; false: there was nobody to do it to
	seen  func(event) bool // is that how it looks to the client?
	times int              // how often it has to be seen
	end   func() error     // makes an end of it; nil: it was over at once
}

// result is what came of a misbehaviour.
type result struct {
	fault fault
	did   uint64        // how often, in the venue's own count
	seen  int           // how often, by the client
	cause error         // as what, first
	away  time.Duration // from its beginning until the book was right again
	err   error         // nil: survived
}

const (
	drillLimit = 27 * time.Second // leaves the rest of 30 s for leaving
	stepLimit  = 10 * time.Second
)

// sight is how it looked to the client.
func (r *result) sight() string {
	if r.seen == 0 {
		return "not seen"
	}
	text := r.cause.Error()
	if e := (*dialer.Error)(nil); errors.As(r.cause, &e) {
		text = strings.TrimPrefix(text, "dial "+e.Endpoint+": ") // it is always the same
	}
	return fmt.Sprintf("%d x %s", r.seen, text)
}

func (d *drill) script() []misbehaviour {
	v := d.venue
	return []misbehaviour{
		{killed, v.kill, func(e event) bool { return e.kind == dialFailed && !refused(e) }, 2, v.open},
		{silent, v.freeze, func(e event) bool { return e.kind == sessionLost && errors.Is(e.err, reconnect.ErrSilent) }, 1, nil},
		{restarts, v.restart, func(e event) bool { return e.kind == sessionLost && closeCode(e.err) == 1012 }, 1, nil},
		{busy, func() bool { return v.turnAway(busy) }, refused, 2, v.welcome},
		{drops, func() bool { return v.turnAway(drops) }, func(e event) bool { return e.kind == neverReady }, 3, v.welcome},
		{shouts, v.shout, func(e event) bool { return e.kind == sessionLost && tooBig(e.err) }, 1, nil},
		{skips, v.skip, func(e event) bool { return e.kind == wrongMessage && isGap(e.err) }, 1, nil},
	}
}

func refused(e event) bool {
	var answer *dialer.Error
	return e.kind == dialFailed && errors.As(e.err, &answer) && answer.StatusCode == 503 && answer.RetryAfter == time.Second
}

func closeCode(err error) int {
	if closed := (*conn.CloseError)(nil); errors.As(err, &closed) {
		return closed.Code
	}
	return 0
}

func tooBig(err error) bool { return errors.As(err, new(*conn.TooBigError)) }

func isGap(err error) bool { return errors.As(err, new(*gapError)) }

// run goes through the script, up to the first failure, and then compares the books.
func (d *drill) run(interrupted context.Context) error {
	ctx, cancel := context.WithTimeoutCause(interrupted, drillLimit, fmt.Errorf("the drill was not over within %v", drillLimit))
	defer cancel()
	for _, m := range d.script() {
		r := d.survive(ctx, m)
		if interrupted.Err() != nil {
			return errInterrupted
		}
		d.results = append(d.results, r)
		if r.err != nil {
			return fmt.Errorf("%s: %w", r.fault, r.err)
		}
	}
	err := d.compare(ctx)
	if interrupted.Err() != nil {
		return errInterrupted
	}
	return err
}

var errInterrupted = errors.New("interrupted")

// compare stops the trade and says what is wrong with the client's book.
func (d *drill) compare(ctx context.Context) error {
	d.venue.halt()
	if err := d.until(ctx, "the client's book is not the venue's", d.equal); err != nil {
		return err
	}
	n, first := d.client.journal.find(mark{}, func(e event) bool { return errors.As(e.err, new(*oldError)) })
	if n > 0 {
		return fmt.Errorf("%d messages of an old session, the first: %w", n, first)
	}
	return nil
}

// survive goes through one misbehaviour.
func (d *drill) survive(ctx context.Context, m misbehaviour) (r result) {
	r.fault = m.fault
	if r.err = d.until(ctx, "the client was not ready and stable before it", d.calm); r.err != nil {
		return r
	}
	journal := d.client.journal
	from, session, start := journal.mark(), d.client.feed.Status().Session, time.Now()
	journal.line("VENUE", "%s", m.fault)
	if r.err = d.until(ctx, "no client was connected for it to be done to", m.begin); r.err != nil {
		return r
	}
	r.err = d.until(ctx, "the client did not see it", func() bool {
		r.seen, r.cause = journal.find(from, m.seen)
		return r.seen >= m.times
	})
	if r.err != nil {
		return r
	}
	if m.end != nil {
		journal.line("VENUE", "behaves again")
		if r.err = d.until(ctx, "the venue did not come back", func() bool { return m.end() == nil }); r.err != nil {
			return r
		}
	}
	if m.newSession() {
		session++
	}
	due := d.venue.view().seq
	r.err = d.until(ctx, "the client did not come back", func() bool {
		b := d.client.book.view()
		return d.inSync(b) && b.session >= session && b.seq >= due && journal.resyncsSince(from) > 0
	})
	r.away = time.Since(start)
	if r.did = d.venue.times(m.fault); r.err == nil && r.did == 0 {
		r.err = errors.New("the venue did not do it")
	}
	return r
}

// newSession reports whether m costs the connection.
func (m *misbehaviour) newSession() bool { return m.fault != skips }

// inSync reports whether b is the valid book of a ready session.
func (d *drill) inSync(b view) bool {
	s := d.client.feed.Status()
	return b.valid && s.State == reconnect.StateReady && s.Session == b.session
}

// calm reports whether the client has been well for so long that waits start again
// from the first.
func (d *drill) calm() bool {
	return d.inSync(d.client.book.view()) && time.Since(d.client.feed.Status().Since) > stableAfter
}

func (d *drill) equal() bool {
	ours, theirs := d.client.book.view(), d.venue.view()
	return ours.valid && ours.seq == theirs.seq && maps.Equal(ours.bids, theirs.bids) && maps.Equal(ours.asks, theirs.asks)
}

// until waits for something to become true. If that takes too long the error says what
// was wrong.
func (d *drill) until(ctx context.Context, wrong string, right func() bool) error {
	limit, cancel := context.WithTimeout(ctx, stepLimit)
	defer cancel()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for {
		if right() {
			return nil
		}
		select {
		case <-look.C:
		case <-limit.Done():
			if ctx.Err() == nil {
				return fmt.Errorf("%s within %v", wrong, stepLimit)
			}
			return fmt.Errorf("%s: %w", wrong, context.Cause(ctx))
		}
	}
}

// table shows what came of each misbehaviour.
func (d *drill) table(out io.Writer) {
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	defer w.Flush()
	fmt.Fprintln(w, "the venue\tclient\tin sync after\tseen as")
	for _, m := range d.script() {
		i := slices.IndexFunc(d.results, func(r result) bool { return r.fault == m.fault })
		if i < 0 {
			fmt.Fprintf(w, "%s\t-\t-\tnot tried\n", m.fault)
			continue
		}
		r := d.results[i]
		verdict := "survived"
		if r.err != nil {
			verdict = "FAILED"
		}
		fmt.Fprintf(w, "%s\t%s\t%v\t%s\n", r.fault, verdict, round(r.away), short(r.sight(), 60))
	}
}
