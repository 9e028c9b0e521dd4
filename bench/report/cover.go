package report

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/redial-go/redial/bench/herd/fleet"
	"github.com/redial-go/redial/bench/internal/chart"
	"github.com/redial-go/redial/bench/internal/cli"
)

// readmePictures draw the pictures of the READMEs.
var readmePictures = []func(context.Context, Options) (*chart.Picture, error){Cover, Lockstep}

// coverClients are those of the cover.
var coverClients = []string{"redial", "full", "nats", "recws", "fixed", "grpc"}

// Cover draws herd.svg, the picture of the README of bench: the dials after a restart that
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

// lockstepClients are those of Lockstep.
var lockstepClients = []string{"fixed", "redial"}

// Lockstep draws lockstep.svg, the picture of the README of the repository: the herd of Cover with
// a fixed wait and with redial. Its axis is linear, because a reader who looks only briefly expects that.
func Lockstep(ctx context.Context, o Options) (*chart.Picture, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	h := settings(o)[0].herd
	runs, err := runHerds(ctx, h, lockstepClients, o.Seeds)
	if err != nil {
		return nil, err
	}
	until, most := max(40, 2*h.Ideal().Seconds()), chart.RoundUp(float64(h.N))
	ends := []chart.Tick{{At: 0, Label: "0"}, {At: most, Label: chart.Number(most)}}
	title := fmt.Sprintf("Simulated: %s clients are lost together; dials per 100 ms at a server for %s/s, over %.0f s",
		chart.Number(float64(h.N)), chart.Number(h.Server.Capacity), until)
	pic := &chart.Picture{Name: "lockstep", Title: title, Columns: len(runs), Height: 64}
	for _, r := range runs {
		line := chart.Steps{Style: r.style, Step: fleet.Bin.Seconds()}
		line.Style.Width, line.Style.Dash = 1.5, nil
		for _, n := range r.result.DialsPerBin {
			line.Values = append(line.Values, float64(n))
		}
		name, back := "redial", strings.TrimPrefix(whenBack(h, r.result), "all ")
		if r.style.Name == "fixed" {
			name = fmt.Sprintf("wait 1 s, dial limit %s", inSeconds(fleet.LentLimit))
		}
		pic.Panels = append(pic.Panels, &chart.Panel{
			Title:  fmt.Sprintf("%s: peak %s; %s", name, chart.Number(math.Round(r.mean.Peak)), back),
			X:      chart.Axis{Min: -until / 80, Max: until},
			Y:      chart.Axis{Max: most, Ticks: ends},
			Layers: []chart.Layer{line},
		})
	}
	return pic, nil
}
