//go:build !js

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/redial-go/redial/conn"
	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/examples/internal/command"
	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/debug"
)

// follower follows a feed of which it knows nothing: it counts what comes.
type follower struct {
	feed    *reconnect.Conn
	journal *journal
}

// live follows a real feed until ctx ends. It keeps all defaults.
func live(ctx context.Context, out io.Writer, page *debug.Page, url, subscription string) error {
	f := &follower{journal: newJournal(out, nil)}
	o := &reconnect.Options{}
	if subscription != "" {
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			return o.Write(conn.TextMessage(subscription)) // it does not wait, because it cannot recognize the answer
		}
	}
	if err := f.follow(&dialer.WebSocket{URL: url}, o); err != nil {
		return &command.UsageError{Err: fmt.Errorf("-url: %w", err)}
	}
	defer f.feed.Close()
	page.Register("feed", f.feed, nil)
	err := f.watch(ctx)
	f.journal.close()
	f.journal.table(out)
	return err
}

// follow starts to keep a connection to a feed open.
func (f *follower) follow(d reconnect.Dialer, o *reconnect.Options) (err error) {
	o.Run.Trace = f.journal.trace()
	if f.feed, err = reconnect.New(d, o); err == nil {
		f.journal.printer.start(f.journal.status(f.feed, func() string { return "" }))
	}
	return err
}

// watch reads the feed and prints a line each second. It returns nil when ctx ends. It
// returns an error when redialing was given up, for instance after an answer of 410 Gone.
func (f *follower) watch(ctx context.Context) error {
	reading := make(chan error, 1)
	go func() { reading <- f.read() }() // <-reading waits for it
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := sample{at: time.Now()}
	for {
		select {
		case <-tick.C:
			last = f.second(last)
		case err := <-reading:
			return err
		case <-ctx.Done():
			f.journal.leave(f.feed)
			<-reading
			return nil
		}
	}
}

// read counts messages until no more can come, on any number of connections. A seam is the
// place between the last message of one connection and the first of the next: messages may
// be missing there.
func (f *follower) read() error {
	for m, err := range f.feed.Messages(context.Background()) {
		if seam, lost := errors.AsType[*reconnect.Seam](err); lost {
			f.journal.seam(seam.Session)
		} else if err != nil {
			return err
		} else {
			f.journal.message(m.Session)
		}
	}
	return nil
}

// second prints what has arrived until now. It returns the count of messages, so that the
// next call can compute the rate.
func (f *follower) second(last sample) sample {
	status, stats := f.feed.Status(), f.feed.Stats()
	now := sample{count: stats.Received, at: time.Now()}
	up := status.State == reconnect.StateOpening || status.State == reconnect.StateReady
	line := ""
	if status.State == reconnect.StateWaiting {
		line = fmt.Sprintf("next try in %s; ", brief(status.Next.Sub(now.at)))
	}
	switch {
	case up:
		line += fmt.Sprintf("session %d: ", status.Session)
	case status.Session > 0:
		line += fmt.Sprintf("after session %d: ", status.Session)
	}
	received, gaps := f.journal.heard()
	if received.IsZero() {
		line += "no message yet"
	} else {
		line += fmt.Sprintf("%d msg", stats.Received)
		if up {
			line += fmt.Sprintf(" (%.0f/s)", float64(now.count-last.count)/now.at.Sub(last.at).Seconds())
		}
		line += fmt.Sprintf(", %s, last %s ago", size(stats.ReceivedBytes), brief(now.at.Sub(received)))
	}
	f.journal.line(status.State.String(), "%s, %s", line, plural(gaps, "gap"))
	return now
}

// brief formats d to a tenth of a second, or to a second from a minute on.
func brief(d time.Duration) string {
	if d >= time.Minute {
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
}

// size formats a number of bytes.
func size(n uint64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	x, unit := float64(n), 0
	for x >= 999.95 && unit < len(units)-1 {
		x /= 1000
		unit++
	}
	return fmt.Sprintf("%.1f %s", x, units[unit])
}

var units = [...]string{"B", "kB", "MB", "GB", "TB"}
