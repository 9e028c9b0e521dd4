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
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/debug"
	"github.com/redial-go/redial/reconnect/replay"
)

// demo runs the drill.
func demo(ctx context.Context, out io.Writer, page *debug.Page) error {
	v, err := openVenue()
	if err != nil {
		return fmt.Errorf("venue: %w", err)
	}
	defer v.close()
	d, err := newDrill(v, newJournal(out, newAudit()))
	if err != nil {
		return fmt.Errorf("client: %w", err)
	}
	d.show(page)
	err = d.run(ctx)
	d.close()
	d.journal.table(out)
	d.table(out)
	if errors.Is(err, errInterrupted) {
		return fmt.Errorf("%w after %d of %d", err, len(d.results), len(d.script()))
	} else if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "\nok: all %d survived, the rotation lost nothing, the books equal the venue's, no message of an old session was applied\n", len(d.results))
	return err
}

// drill makes the venue misbehave in one way after the other, and checks that the client
// survives each. It does not depend on the speed of the machine, because each step waits,
// up to a limit, until it sees what it expects.
type drill struct {
	venue   *venue
	client  *client
	journal *journal
	wanted  []string // the books that the client is to have, in order
	results []result
	read    chan struct{} // closed when the client has read all
}

// newDrill starts a client of a venue. The caller calls close.
func newDrill(v *venue, j *journal) (*drill, error) {
	j.line("VENUE", "opens at ws://%s/feed", v.addr)
	c, err := follow(&dialer.WebSocket{
		URL:  "ws://" + v.addr + "/feed",
		Conn: conn.WebSocketOptions{Limits: conn.Limits{ReadLimit: 1 << 20}}, // the default is 16 MiB
	}, &reconnect.Options{
		// These numbers are small because the whole drill has 30 s. Keep the defaults for
		// a real feed, as live does, because its server must serve all its clients at once.
		Liveness: reconnect.Liveness{Limit: 1500 * time.Millisecond},
		Rotate:   reconnect.Rotation{Drain: 300 * time.Millisecond},
		Run: reconnect.RunOptions{
			Policy:      backoff.First(300*time.Millisecond, &backoff.Exponential{Base: 100 * time.Millisecond, Cap: time.Second}),
			StableAfter: stableAfter,
			Trace:       j.trace(),
		},
	}, secret, j.keys)
	if err != nil {
		return nil, err
	}
	d := &drill{venue: v, client: c, journal: j, read: make(chan struct{})}
	j.printer.start(j.status(c.feed, d.status))
	d.want("C-USD", "GO-USD")
	go func() { // close waits for it
		defer close(d.read)
		c.read(context.Background(), j.event)
	}()
	return d, nil
}

// close ends the client.
func (d *drill) close() {
	d.journal.leave(d.client.feed)
	<-d.read
	d.journal.close()
}

// show shows the client on a page.
func (d *drill) show(page *debug.Page) {
	c := d.client
	page.Register("feed", c.feed, &debug.ConnOptions{Subscriptions: func() (wanted, held int) {
		stats := c.set.Stats()
		return stats.Wanted, stats.Held
	}})
	page.RegisterValues("Books", func() []debug.Value {
		stats := c.bridge.Stats()
		return []debug.Value{{Name: "books", Text: fmt.Sprint(stats.Streams)}, {Name: "stale", Text: fmt.Sprint(stats.Stale)}}
	})
}

// want changes what the client wants.
func (d *drill) want(symbols ...string) {
	d.journal.line("CLIENT", "wants %s", strings.Join(symbols, ", "))
	d.wanted = symbols
	d.client.want(symbols...)
}

// status returns a part of the line at the bottom of a terminal.
func (d *drill) status() string {
	stats := d.client.bridge.Stats()
	return fmt.Sprintf(", %s, %d stale", plural(stats.Streams, "book"), stats.Stale)
}

// misbehaviour is one step of the drill.
type misbehaviour struct {
	fault fault
	want  []string           // what the client wants from then on; nil: as before
	begin func() bool        // does it; returns false if it had no effect, because no client was connected
	seen  func(trouble) bool // reports whether it is how the client sees it
	times int                // how often the client must see it
	end   func() error       // ends it; nil if it was over at once
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
	all := []string{"ADA-USD", "C-USD", "GO-USD"}
	return []misbehaviour{
		{killed, nil, v.kill, func(t trouble) bool { return t.kind == dialFailed && !refused(t) }, 2, v.open},
		{silent, nil, v.freeze, func(t trouble) bool { return t.kind == sessionLost && errors.Is(t.err, reconnect.ErrSilent) }, 1, nil},
		{restarts, all, v.restart, func(t trouble) bool { return t.kind == sessionLost && closeCode(t.err) == 1012 }, 1, nil},
		{busy, nil, func() bool { return v.turnAway(busy) }, refused, 2, v.welcome},
		{drops, []string{"ADA-USD", "GO-USD"}, func() bool { return v.turnAway(drops) }, func(t trouble) bool { return t.kind == neverReady }, 3, v.welcome},
		{shouts, nil, v.shout, func(t trouble) bool { return t.kind == sessionLost && tooBig(t.err) }, 1, nil},
		{skips, nil, v.skip, func(t trouble) bool { return t.kind == outOfSync && isGap(t.err) }, 1, nil},
	}
}

func refused(t trouble) bool {
	var answer *dialer.Error
	return t.kind == dialFailed && errors.As(t.err, &answer) && answer.StatusCode == 503 && answer.RetryAfter == time.Second
}

func closeCode(err error) int {
	if closed := (*conn.CloseError)(nil); errors.As(err, &closed) {
		return closed.Code
	}
	return 0
}

func tooBig(err error) bool { return errors.As(err, new(*conn.TooBigError)) }

func isGap(err error) bool { return errors.As(err, new(*replay.GapError)) }

// run runs the script up to the first failure, and then compares the books.
func (d *drill) run(interrupted context.Context) error {
	ctx, cancel := context.WithTimeoutCause(interrupted, drillLimit, fmt.Errorf("the drill was not over within %v", drillLimit))
	defer cancel()
	for _, m := range d.script() {
		if m.want != nil {
			d.want(m.want...)
		}
		r := d.survive(ctx, m)
		if interrupted.Err() != nil {
			return errInterrupted
		}
		d.results = append(d.results, r)
		if r.err != nil {
			return fmt.Errorf("%s: %w", r.fault, r.err)
		}
	}
	err := d.rotate(ctx)
	if err == nil {
		err = d.compare(ctx)
	}
	if interrupted.Err() != nil {
		return errInterrupted
	}
	return err
}

// rotate has the client replace its session, as it does each day, and returns an error if that
// was more than a switch.
func (d *drill) rotate(ctx context.Context) error {
	if err := d.until(ctx, "the client was not ready and stable before the rotation", d.calm); err != nil {
		return err
	}
	from, status := d.journal.mark(), d.client.feed.Status()
	d.journal.line("CLIENT", "replaces session %d by the next one", status.Session)
	d.client.feed.Rotate(status.Session, reconnect.Advice{})
	err := d.until(ctx, "the client did not switch", func() bool {
		return d.client.feed.Status().Session > status.Session && d.inSync()
	})
	if err != nil {
		return err
	}
	if n, first := d.journal.find(from, func(t trouble) bool { return t.kind != sessionLost }); n > 0 {
		return fmt.Errorf("the rotation was not smooth: %w", first)
	}
	if n := d.journal.resyncsSince(from); n > 0 {
		return fmt.Errorf("the rotation has made %s stale", plural(n, "book"))
	}
	return nil
}

var errInterrupted = errors.New("interrupted")

// compare stops the trade and returns an error if a book of the client is wrong.
func (d *drill) compare(ctx context.Context) error {
	d.venue.halt()
	if err := d.until(ctx, "the client's books are not the venue's", d.equal); err != nil {
		return err
	}
	return d.journal.audit.result()
}

// survive runs one misbehaviour and waits until the client is in sync again.
func (d *drill) survive(ctx context.Context, m misbehaviour) (r result) {
	r.fault = m.fault
	if r.err = d.until(ctx, "the client was not ready and stable before it", d.calm); r.err != nil {
		return r
	}
	journal := d.journal
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
	r.err = d.until(ctx, "the client did not come back", func() bool {
		return d.client.feed.Status().Session >= session && d.inSync() && journal.resyncsSince(from) > 0
	})
	r.away = time.Since(start)
	if r.did = d.venue.times(m.fault); r.err == nil && r.did == 0 {
		r.err = errors.New("the venue did not do it")
	}
	return r
}

// newSession reports whether m ends the connection.
func (m *misbehaviour) newSession() bool { return m.fault != skips }

// inSync reports whether the client has a valid book of the ready session for each symbol that
// it wants, and no other.
func (d *drill) inSync() bool {
	s := d.client.feed.Status()
	return s.State == reconnect.StateReady && d.all(func(_ string, b view) bool { return b.valid && b.session == s.Session })
}

// all reports whether the client has the books that it wants and no other, and all are right.
func (d *drill) all(right func(symbol string, b view) bool) bool {
	for _, symbol := range d.wanted {
		if !right(symbol, d.client.view(symbol)) {
			return false
		}
	}
	return slices.Equal(d.client.symbols(), d.wanted)
}

// calm reports whether the venue agrees to what the client wants, and the client has been in sync
// for so long that its next wait is the first again.
func (d *drill) calm() bool {
	return d.inSync() && d.client.set.Stats().Held == len(d.wanted) && time.Since(d.client.feed.Status().Since) > stableAfter
}

// equal reports whether the client's books are those of the venue.
func (d *drill) equal() bool {
	return d.all(func(symbol string, ours view) bool {
		theirs := d.venue.view(symbol)
		return ours.valid && ours.seq == theirs.seq && maps.Equal(ours.bids, theirs.bids) && maps.Equal(ours.asks, theirs.asks)
	})
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
