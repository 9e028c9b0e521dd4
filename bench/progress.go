package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
)

// progress shows how far a command is, once it takes longer than two seconds: a bar
// on a terminal, else a plain line every ten seconds. Its methods may be called from
// any goroutine.
type progress struct {
	c     *console
	what  string
	total int

	mu    sync.Mutex // guards what follows
	done  int
	began time.Time
	lined time.Time // when the last line was printed
	bar   *progressbar.ProgressBar

	over, stopped chan struct{}
}

const (
	progressAfter = 2 * time.Second
	progressEvery = 10 * time.Second
)

// newProgress begins something with total parts. It has a goroutine, since the first
// of the parts may take long; end waits for that.
func newProgress(c *console, what string, total int) *progress {
	now := time.Now()
	p := &progress{c: c, what: what, total: total, began: now, lined: now.Add(progressAfter - progressEvery),
		over: make(chan struct{}), stopped: make(chan struct{})}
	go func() { defer close(p.stopped); p.watch() }()
	return p
}

// watch shows what there is until it is over, whether anything is done or not.
func (p *progress) watch() {
	tick := time.NewTicker(progressAfter)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			p.add(0)
		case <-p.over:
			return
		}
	}
}

// add notes that n more parts are done.
func (p *progress) add(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done += n
	now := time.Now()
	switch {
	case now.Sub(p.began) < progressAfter:
	case p.c.terminal:
		if p.bar == nil {
			p.bar = progressbar.NewOptions(p.total, progressbar.OptionSetWriter(p.c.errs),
				progressbar.OptionSetDescription(p.what), progressbar.OptionSetWidth(30),
				progressbar.OptionShowCount(), progressbar.OptionClearOnFinish(),
				progressbar.OptionThrottle(100*time.Millisecond))
		}
		_ = p.bar.Set(min(p.done, p.total)) // only a picture
	case now.Sub(p.lined) >= progressEvery:
		p.lined = now
		fmt.Fprintf(p.c.errs, "%s: %d of %d\n", p.what, p.done, p.total)
	}
}

// end takes the bar away.
func (p *progress) end() {
	close(p.over)
	<-p.stopped
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bar != nil {
		_ = p.bar.Clear() // only a picture
	}
}
