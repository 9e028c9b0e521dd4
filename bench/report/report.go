package report

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// FileName is that of the HTML file in the directory of a report.
const FileName = "report.html"

// Write draws a report into a directory, which it makes if there is none: [FileName], and
// each picture as SVG. When ctx ends it keeps what is drawn, says so in the HTML,
// and returns the context's cause.
func Write(ctx context.Context, dir string, o Options) error {
	o, err := o.withDefaults()
	if err != nil {
		return err
	}
	if err := prepare(dir); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	chapters, err := draw(ctx, dir, o)
	if err != nil {
		return err
	}
	f, err := os.Create(filepath.Join(dir, FileName))
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	err = writeHTML(f, o, chapters)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("write report %s: %w", f.Name(), err)
	}
	return context.Cause(ctx)
}

// prepare makes the directory and sees that files can be made in it, before minutes go
// into pictures that cannot be kept.
func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".writable")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// draw draws what is wanted on all processors. Its error is never the context's: what
// was not drawn by then is counted as missing.
func draw(ctx context.Context, dir string, o Options) ([]*Chapter, error) {
	type job struct {
		drawing drawing
		into    **Figure
	}
	var (
		chapters []*Chapter
		jobs     []job
	)
	for _, p := range plans(o) {
		if len(o.Only) > 0 && !slices.Contains(o.Only, p.id) {
			continue
		}
		c := &Chapter{ID: p.id, Title: p.title, Text: p.text, Figures: make([]*Figure, len(p.figures))}
		for i, d := range p.figures {
			jobs = append(jobs, job{d, &c.Figures[i]})
		}
		chapters = append(chapters, c)
	}
	var (
		workers sync.WaitGroup
		mu      sync.Mutex // guards what follows, and o.Each
		next    int
		done    int
		failed  error
	)
	take := func() *job {
		mu.Lock()
		defer mu.Unlock()
		if next == len(jobs) || failed != nil || ctx.Err() != nil {
			return nil
		}
		next++
		return &jobs[next-1]
	}
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := take(); j != nil; j = take() {
				figure, err := drawOne(ctx, dir, j.drawing)
				mu.Lock()
				switch {
				case err == nil:
					*j.into = figure
					done++
					if o.Each != nil {
						o.Each(done, len(jobs))
					}
				case failed == nil && !errors.Is(err, context.Cause(ctx)):
					failed = err
				}
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	for _, c := range chapters {
		all := len(c.Figures)
		c.Figures = slices.DeleteFunc(c.Figures, func(f *Figure) bool { return f == nil })
		c.Missing = all - len(c.Figures)
	}
	return chapters, failed
}

func drawOne(ctx context.Context, dir string, d drawing) (*Figure, error) {
	f, err := d(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range f.Pictures {
		if err := p.Save(dir); err != nil {
			return nil, err
		}
	}
	return f, nil
}
