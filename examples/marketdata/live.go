//go:build !js

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/redial-go/redial/dialer"
	"github.com/redial-go/redial/reconnect"
)

// live follows a real feed until ctx ends. It keeps all defaults.
func live(ctx context.Context, stdout *os.File, stderr io.Writer, url, subscription string) int {
	c := &client{journal: newJournal(stdout, false)}
	o := &reconnect.Options{}
	if subscription != "" {
		o.OnSession = func(_ context.Context, o *reconnect.Opening) error {
			return o.Write(text(subscription)) // it does not wait, because it cannot recognize the answer
		}
	}
	if err := c.follow(&dialer.WebSocket{URL: url}, o); err != nil {
		fmt.Fprintln(stderr, "marketdata: -url:", err)
		return 2
	}
	defer c.feed.Close()
	err := c.watch(ctx)
	c.journal.close()
	c.journal.table(stdout)
	if err != nil {
		fmt.Fprintln(stdout, "\nFAILED:", err)
		return 1
	}
	return 0
}

// watch reads the feed and prints a line each second. It returns nil when ctx ends. It
// returns an error when redialing was given up, for instance after an answer of 410 Gone.
func (c *client) watch(ctx context.Context) error {
	reading := make(chan error, 1)
	go func() { reading <- c.read(context.Background()) }() // <-reading waits for it
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	last := sample{at: time.Now()}
	for {
		select {
		case <-tick.C:
			last = c.second(last)
		case err := <-reading:
			return err
		case <-ctx.Done():
			c.leave()
			<-reading
			return nil
		}
	}
}

// second prints what has arrived until now. It returns the count of messages, so that the
// next call can compute the rate.
func (c *client) second(last sample) sample {
	status, stats := c.feed.Status(), c.feed.Stats()
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
	received, gaps := c.journal.heard()
	if received.IsZero() {
		line += "no message yet"
	} else {
		line += fmt.Sprintf("%d msg", stats.Received)
		if up {
			line += fmt.Sprintf(" (%.0f/s)", float64(now.count-last.count)/now.at.Sub(last.at).Seconds())
		}
		line += fmt.Sprintf(", %s, last %s ago", size(stats.ReceivedBytes), brief(now.at.Sub(received)))
	}
	c.journal.line(status.State.String(), "%s, %s", line, plural(gaps, "gap"))
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
