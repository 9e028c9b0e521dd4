package cli

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/redial-go/redial/bench/internal/parallel"
)

// Progress shows how far a command is, once it takes longer than two seconds: a line that
// changes on a terminal, else a plain line every ten seconds. Its methods may be called from
// any goroutine.
type Progress struct {
	c     *Console
	what  string
	total int

	mu    sync.Mutex // guards what follows
	done  int
	began time.Time
	lined time.Time // when the last line was printed
	shown bool      // there is a line on the terminal

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
		p.shown = true
		fmt.Fprintf(p.c.Errs, "\r%s: %d/%d", p.what, min(p.done, p.total), p.total)
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
	if p.shown {
		fmt.Fprintf(p.c.Errs, "\r%*s\r", len(p.what)+len(": /")+2*len(fmt.Sprint(p.total)), "")
	}
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
