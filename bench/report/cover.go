package report

import (
	"context"
	"fmt"

	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
)

// coverClients are those of the cover.
var coverClients = []string{"redial", "full", "nats", "recws", "fixed", "grpc"}

// Cover draws the picture of the README of the repository: the dials after a restart that
// is over at once. It has the library as it is, whatever its defaults are by now.
func Cover(ctx context.Context, o Options) (*chart.Picture, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := settings(o)[0].herd
	runs, err := runHerds(ctx, h, coverClients, o.Seeds)
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("%s. A peak is the mean of %s, the line is one run. full: full jitter from 0.5 s to 30 s; fixed: 1 s", herdNote(h), cli.Plural(o.Seeds, "run"))
	return dialsPicture("herd", "All connections are lost at once: dials per 100 ms, log scale", note, h, runs, max(40, 2*h.Ideal().Seconds())), nil
}
