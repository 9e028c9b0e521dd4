package report

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redial-go/redial/bench/internal/cli"
)

// Command is "bench report".
func Command() cli.Command {
	return cli.Command{Name: "report", Summary: "draw all simulations: one HTML file, and the pictures as SVG", Run: drawReport}
}

// drawReport is "bench report".
func drawReport(ctx context.Context, c *cli.Console, args []string) error {
	o := Options{}
	flags := cli.NewFlags()
	out := flags.String("out", "", "write the report to this `directory`")
	flags.IntVar(&o.RPS, "rps", 10_000, "calls per second of the queueing scenarios; the article's pictures have 300000")
	flags.IntVar(&o.Seeds, "seeds", 3, "runs of which the figures are the means")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first run; the next runs count up")
	flags.IntVar(&o.N, "n", 10_000, "how many connections a herd has")
	flags.Float64Var(&o.Capacity, "capacity", 500, "handshakes that the server completes per second")
	flags.Func("herd", "show a measurement: `SERIES,RUNS`, the files that \"bench herd\" has written with -series and -csv; may be given again for another", func(files string) error {
		o.Herd = append(o.Herd, cli.List(files))
		return nil
	})
	only := flags.String("only", "", "draw only these chapters, separated by commas: "+strings.Join(ChapterIDs(), ", "))
	cover := flags.String("readme", "", "draw only the picture of the README, to this `file`: herd.svg")
	if err := cli.Parse(c, flags, args); err != nil {
		return err
	}
	o.Only = cli.List(*only)
	if err := checkReport(o, *out, *cover); err != nil {
		return cli.Usage(err)
	}
	if *cover != "" {
		return drawCover(ctx, c, *cover, o)
	}
	var (
		once sync.Once
		bar  *cli.Progress
	)
	o.Each = func(_, all int) {
		once.Do(func() { bar = cli.NewProgress(c, "draw", all) })
		bar.Add(1)
	}
	err := Write(ctx, *out, o)
	if bar != nil {
		bar.End()
	}
	if err == nil || ctx.Err() != nil {
		fmt.Fprintln(c.Out, filepath.Join(*out, FileName))
	}
	return err
}

func checkReport(o Options, out, cover string) error {
	switch {
	case (out == "") == (cover == ""):
		return fmt.Errorf("want -out DIRECTORY, or -readme FILE")
	case cover != "" && (len(o.Only) > 0 || len(o.Herd) > 0):
		return fmt.Errorf("-only and -herd say what is in a report, and -readme is one picture")
	case o.RPS < 1 || o.Seeds < 1 || o.N < 1 || !(o.Capacity > 0):
		return fmt.Errorf("-rps, -seeds, -n and -capacity must be above 0")
	}
	return o.Validate()
}

func drawCover(ctx context.Context, c *cli.Console, file string, o Options) error {
	pic, err := Cover(ctx, o)
	if err != nil {
		return err
	}
	if err := cli.WriteFile(c, file, pic.WriteSVG); err != nil {
		return err
	}
	fmt.Fprintln(c.Out, file)
	return nil
}
