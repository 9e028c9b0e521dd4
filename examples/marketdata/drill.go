//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
)

// demo runs the drill and returns the exit code.
func demo(ctx context.Context, stdout *os.File) int {
	v, err := openVenue()
	if err != nil {
		fmt.Fprintln(stdout, "FAILED: venue:", err)
		return 1
	}
	defer v.close()
	c := &client{book: &book{}, journal: newJournal(stdout, true)}
	c.journal.line("VENUE", "opens at ws://%s/feed", v.addr)
	err = c.follow(&dialer.WebSocket{
		URL:  "ws://" + v.addr + "/feed",
		Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: 1 << 20}}, // the default is 16 MiB
	}, &reconnect.Options{
		OnSession: c.open,
		// These numbers are small because the whole drill has 30 s. Keep the defaults for
		// a real feed, as live does, because its server must serve all its clients at once.
		Liveness: reconnect.Liveness{Limit: 1500 * time.Millisecond},
		Run: reconnect.RunOptions{
			Policy:      backoff.First(300*time.Millisecond, &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}),
			StableAfter: stableAfter,
		},
	})
	if err != nil {
		fmt.Fprintln(stdout, "FAILED: client:", err)
		return 1
	}
	reading := make(chan error, 1)
	go func() { reading <- c.read(context.Background()) }() // <-reading waits for it
	d := &drill{venue: v, client: c}
	err = d.run(ctx)
	c.leave()
	<-reading
	c.journal.close()
	c.journal.table(stdout)
	d.table(stdout)
	switch {
	case errors.Is(err, errInterrupted):
		fmt.Fprintf(stdout, "\n%v after %d of %d\n", err, len(d.results), len(d.script()))
		return 1
	case err != nil:
		fmt.Fprintf(stdout, "\nFAILED: %v\n", err)
		return 1
	}
	fmt.Fprintf(stdout, "\nok: all %d survived, the book equals the venue's, no message of an old session was applied\n", len(d.results))
	return 0
}

// drill makes the venue misbehave in one way after the other, and checks that the client
// survives each. It does not depend on the speed of the machine, because each step waits,
// up to a limit, until it sees what it expects.
type drill struct {
	venue   *venue
	client  *client
	results []result
}

// misbehaviour is one step of the drill.
type misbehaviour struct {
	fault fault
	begin func() bool      // does it; returns false if it had no effect, because no client was connected
	seen  func(event) bool // reports whether the event is how the client sees it
	times int              // how often the client must see it
	end   func() error     // ends it; nil if it was over at once
}

// result is the outcome of a misbehaviour.
type result struct {
	fault fault
	did   uint64        // how often the venue did it
	seen  int           // how often the client saw it
	cause error         // the first error that the client saw
	away  time.Duration // from its beginning until the book was in sync again
	err   error         // nil if the client survived
}

const (
	drillLimit  = 27 * time.Second // the rest of the 30 s is for leaving
	stepLimit   = 10 * time.Second
	stableAfter = time.Second
)

// sight returns how often and as what the client saw it.
func (r *result) sight() string {
	if r.seen == 0 {
		return "not seen"
	}
	text := r.cause.Error()
	if e := (*dialer.Error)(nil); errors.As(r.cause, &e) {
		text = strings.TrimPrefix(text, "dial "+e.Endpoint+": ") // which is the same in all rows
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

// run runs the script up to the first failure, and then compares the books.
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

// compare stops the trade and returns an error if the client's book is wrong.
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

// survive runs one misbehaviour and waits until the client is in sync again.
func (d *drill) survive(ctx context.Context, m misbehaviour) (r result) {
	r.fault = m.fault
	if r.err = d.until(ctx, "the client was not ready and stable before it", d.calm); r.err != nil {
		return r
	}
	journal := d.client.journal
	from, session, start := journal.mark(), d.client.feed.Status().Session, time.Now()
	journal.line("VENUE", "%s", m.fault)
	if r.err = d.until(ctx, "no client was connected", m.begin); r.err != nil {
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

// newSession reports whether m ends the connection.
func (m *misbehaviour) newSession() bool { return m.fault != skips }

// inSync reports whether b is the valid book of a ready session.
func (d *drill) inSync(b view) bool {
	s := d.client.feed.Status()
	return b.valid && s.State == reconnect.StateReady && s.Session == b.session
}

// calm reports whether the client has been in sync for so long that its next wait is the
// first again.
func (d *drill) calm() bool {
	return d.inSync(d.client.book.view()) && time.Since(d.client.feed.Status().Since) > stableAfter
}

func (d *drill) equal() bool {
	ours, theirs := d.client.book.view(), d.venue.view()
	return ours.valid && ours.seq == theirs.seq && maps.Equal(ours.bids, theirs.bids) && maps.Equal(ours.asks, theirs.asks)
}

// until waits until right returns true. If that takes too long, it returns an error that
// begins with wrong.
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

// table prints the outcome of each misbehaviour.
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
