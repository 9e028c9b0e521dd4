package cli

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
)

// Progress shows how far a command is, once it takes longer than two seconds: a bar with the time
// that is left on a terminal, else a plain line every ten seconds. Its methods may be called from
// any goroutine.
type Progress struct {
	c     *Console
	what  string
	total int

	mu    sync.Mutex // guards what follows
	done  int
	began time.Time
	lined time.Time // when the last line was printed
	shown int       // columns of the line on the terminal

	over, stopped chan struct{}
}

const (
	progressAfter = 2 * time.Second
	progressEvery = 10 * time.Second
)

// NewProgress begins something with total parts. It has a goroutine, since the first
// of the parts may take long; End waits for that.
func NewProgress(c *Console, what string, total int) *Progress {
	now := time.Now()
	p := &Progress{c: c, what: what, total: total, began: now, lined: now.Add(progressAfter - progressEvery),
		over: make(chan struct{}), stopped: make(chan struct{})}
	go func() { defer close(p.stopped); p.watch() }()
	return p
}

// watch shows what there is until it is over, whether anything is done or not.
func (p *Progress) watch() {
	tick := time.NewTicker(progressAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.Add(0)
		case <-p.over:
			return
		}
	}
}

// Add notes that n more parts are done.
func (p *Progress) Add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := time.Now()
	switch {
	case now.Sub(p.began) < progressAfter:
	case p.c.Terminal:
		line := p.bar(now)
		fmt.Fprintf(p.c.Errs, "\r%-*s", p.shown, line)
		p.shown = max(p.shown, len(line))
	case now.Sub(p.lined) >= progressEvery:
		p.lined = now
		fmt.Fprintf(p.c.Errs, "%s: %d of %d\n", p.what, p.done, p.total)
	}
}

// End takes the line away.
func (p *Progress) End() {
	close(p.over)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shown > 0 {
		fmt.Fprintf(p.c.Errs, "\r%*s\r", p.shown, "")
	}
}

// bar returns the line of a terminal. The time that is left supposes that all parts take as long.
func (p *Progress) bar(now time.Time) string {
	const width = 20
	done := min(p.done, p.total)
	full := width * done / max(p.total, 1)
	line := fmt.Sprintf("%s [%s%s] %d/%d", p.what, strings.Repeat("#", full), strings.Repeat("-", width-full), done, p.total)
	if done > 0 && done < p.total {
		left := now.Sub(p.began).Seconds() * float64(p.total-done) / float64(done)
		line += fmt.Sprintf(", %.0f s left", left)
	}
	return line
}

// Each does the parts 0 to n-1 of something, so many at a time, and shows how far it is. Its errors
// are those of [parallel.Do].
func (c *Console) Each(ctx context.Context, what string, n, workers int, f func(i int) error) error {
	p := NewProgress(c, what, n)
	defer p.End()
	return parallel.Do(ctx, n, workers, func(i int) error {
		err := f(i)
		if err == nil {
			p.Add(1)
		}
		return err
	})
}
