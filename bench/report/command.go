package report

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
)

// Command is "bench report".
func Command() cli.Command {
	return cli.Command{Name: "report", Summary: "draw all simulations: one HTML file, and the pictures as SVG", Example: "-out report -only herd,aws", New: cli.New[drawnReport]}
}

// drawnReport is "bench report".
type drawnReport struct {
	Options
	out, cover string
}

func (o *drawnReport) Flags(f *cli.Flags) {
	f.StringVar(&o.out, "out", "", "write the report to this `directory`")
	f.IntVar(&o.RPS, "rps", 10_000, "calls per second of the queueing scenarios; the article's pictures have 300000")
	f.IntVar(&o.Seeds, "seeds", 3, "runs of which the figures are the means")
	f.Seed(&o.Seed)
	f.IntVar(&o.N, "n", 10_000, "how many connections a herd has")
	f.Float64Var(&o.Capacity, "capacity", 500, "handshakes that the server completes per second")
	cli.SomeOf(f, &o.Only, "only", "", "draw only these chapters: "+strings.Join(ChapterIDs(), ", "), ChapterIDs(), pick.Itself)
	f.StringVar(&o.Scenario, "scenario", "", "draw only this scenario of the retries article, one server or services in a row, or your own: mine.json")
	f.StringVar(&o.cover, "readme", "",
		"draw only the pictures of the READMEs, herd.svg and lockstep.svg, into this `directory`")
	f.Check(func() error {
		switch {
		case (o.out == "") == (o.cover == ""):
			return errors.New("want -out DIRECTORY, or -readme DIRECTORY")
		case o.cover != "" && len(o.Only) > 0:
			return errors.New("-only says what is in a report, and -readme is two pictures")
		case o.Scenario != "" && (o.cover != "" || len(o.Only) > 0):
			return errors.New("-scenario is all that is in a report")
		case o.RPS < 1 || o.Seeds < 1 || o.N < 1 || !(o.Capacity > 0):
			return errors.New("-rps, -seeds, -n and -capacity must be above 0")
		}
		if o.Scenario != "" {
			o.Only = []string{"queueing"}
			if tiers.Has(o.Scenario) {
				o.Only = []string{"tiers"}
			}
		}
		return o.Validate()
	})
}

func (o *drawnReport) Run(ctx context.Context, c *cli.Console) error {
	if o.cover != "" {
		bar := cli.NewProgress(c, "draw", len(readmePictures))
		defer bar.End()
		for _, draw := range readmePictures {
			pic, err := draw(ctx, o.Options)
			if err != nil {
				return err
			}
			if err := pic.Save(o.cover); err != nil {
				return err
			}
			bar.Add(1)
		}
		return nil
	}
	var (
		once sync.Once
		bar  *cli.Progress
	)
	o.Each = func(_, all int) {
		once.Do(func() { bar = cli.NewProgress(c, "draw", all) })
		bar.Add(1)
	}
	err := Write(ctx, o.out, o.Options)
	if bar != nil {
		bar.End()
	}
	if err == nil || ctx.Err() != nil {
		fmt.Fprintln(c.Out, filepath.Join(o.out, FileName))
	}
	return err
}
