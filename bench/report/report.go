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

	"github.com/redial-go/redial/bench/internal/parallel"
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
	var mu sync.Mutex // guards done, and o.Each
	done := 0
	failed := parallel.Do(ctx, len(jobs), runtime.GOMAXPROCS(0), func(i int) error {
		figure, err := drawOne(ctx, dir, jobs[i].drawing)
		if err != nil {
			return err
		}
		*jobs[i].into = figure
		mu.Lock()
		defer mu.Unlock()
		done++
		if o.Each != nil {
			o.Each(done, len(jobs))
		}
		return nil
	})
	if failed != nil && !errors.Is(failed, context.Cause(ctx)) {
		return nil, failed
	}
	for _, c := range chapters {
		all := len(c.Figures)
		c.Figures = slices.DeleteFunc(c.Figures, func(f *Figure) bool { return f == nil })
		c.Missing = all - len(c.Figures)
	}
	return chapters, nil
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
