//go:build !js

package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// report is what came of a call.
type report struct {
	toService, toCaller counted
	rotations, failed   uint64 // sessions that were replaced, and that were to be and were not
	journal             *journal
	err                 error // why the call was not held to its end; nil: it was
}

// counted is the frames in one direction.
type counted struct{ said, heard *tally }

// result is what came of them.
type result struct {
	said, heard, missing, twice int
	saidPause, heardPause       time.Duration // the longest between two frames, at either end
}

func (c counted) result() result {
	said, heard := c.said.counts(), c.heard.counts()
	return result{
		said: said.frames, heard: heard.frames, missing: said.frames + heard.twice - heard.frames, twice: heard.twice,
		saidPause: said.longest, heardPause: heard.longest,
	}
}

// longestPause is by how much the longest pause between two frames at the receiver may exceed the
// longest one of the sender, which may be busy itself. To wait for Write is no pause of the sender.
const longestPause = 100 * time.Millisecond

// fault returns what was wrong, nil if nothing was.
func (r result) fault() error {
	if r.missing == 0 && r.twice == 0 && r.heardPause <= r.saidPause+longestPause {
		return nil
	}
	return fmt.Errorf("%d frames are missing, %d came twice, the longest pause was %v, and %v at the sender",
		r.missing, r.twice, r.heardPause.Round(time.Millisecond), r.saidPause.Round(time.Millisecond))
}

// verdict returns what was wrong with the call, nil if nothing was.
func (r *report) verdict() error {
	wrong := []error{r.err}
	for _, d := range r.directions() {
		if err := d.result().fault(); err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", d.name, err))
		}
	}
	return errors.Join(wrong...)
}

// direction is one of the two.
type direction struct {
	name string
	counted
}

func (r *report) directions() []direction {
	return []direction{{"caller to service", r.toService}, {"service to caller", r.toCaller}}
}

// print prints a table of the sessions and one of the frames.
func (r *report) print(out io.Writer) {
	r.journal.print(out)
	fmt.Fprintf(out, "%d sessions were replaced; %d were to be replaced, and were not\n\n", r.rotations, r.failed)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "frames\tsent\treceived\tmissing\ttwice\tlongest pause\tthe sender's own\t")
	for _, d := range r.directions() {
		n := d.result()
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%v\t%v\t\n", d.name, n.said, n.heard, n.missing, n.twice,
			n.heardPause.Round(time.Millisecond), n.saidPause.Round(time.Millisecond))
	}
	w.Flush()
}
