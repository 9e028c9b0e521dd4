package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/redial-go/redial/bench/report"
)

func init() {
	register(command{"report", "draw all simulations: one HTML file, and the pictures as SVG and PNG", drawReport})
}

// drawReport is "bench report".
func drawReport(ctx context.Context, c *console, args []string) error {
	o := report.Options{}
	flags := flag.NewFlagSet("report", flag.ContinueOnError)
	out := flags.String("out", "", "write the report to this `directory`")
	flags.IntVar(&o.RPS, "rps", 10_000, "calls per second of the queueing scenarios; the article's pictures have 300000")
	flags.IntVar(&o.Seeds, "seeds", 3, "runs of which the figures are the means")
	flags.Uint64Var(&o.Seed, "seed", 1, "seed of the first run; the next runs count up")
	flags.IntVar(&o.N, "n", 10_000, "how many connections a herd has")
	flags.Float64Var(&o.Capacity, "capacity", 500, "handshakes that the server completes per second")
	flags.Func("herd", "show a measurement: `SERIES,RUNS`, the files that \"bench herd\" has written with -series and -csv; may be given again for another", func(files string) error {
		o.Herd = append(o.Herd, list(files))
		return nil
	})
	flags.StringVar(&o.Peers, "peers", "", "show a measurement of other libraries: the `file` that \"bench peers\" has written with -json")
	only := flags.String("only", "", "draw only these chapters, separated by commas: "+strings.Join(report.ChapterIDs(), ", "))
	cover := flags.String("readme", "", "draw only the picture of the README, to this `file`: herd.svg or herd.png")
	if err := parse(c, flags, args); err != nil {
		return err
	}
	o.Only = list(*only)
	if err := checkReport(o, *out, *cover); err != nil {
		return usageError{err}
	}
	if *cover != "" {
		return drawCover(ctx, c, *cover, o)
	}
	var (
		once sync.Once
		bar  *progress
	)
	o.Each = func(_, all int) {
		once.Do(func() { bar = newProgress(c, "draw", all) })
		bar.add(1)
	}
	err := report.Write(ctx, *out, o)
	if bar != nil {
		bar.end()
	}
	if err == nil || ctx.Err() != nil {
		fmt.Fprintln(c.out, filepath.Join(*out, report.FileName))
	}
	return err
}

func checkReport(o report.Options, out, cover string) error {
	switch {
	case (out == "") == (cover == ""):
		return fmt.Errorf("want -out DIRECTORY, or -readme FILE")
	case cover != "" && !strings.HasSuffix(cover, ".svg") && !strings.HasSuffix(cover, ".png"):
		return fmt.Errorf("want a file that ends in .svg or .png as -readme, not %s", cover)
	case cover != "" && (len(o.Only) > 0 || len(o.Herd) > 0 || o.Peers != ""):
		return fmt.Errorf("-only, -herd and -peers say what is in a report, and -readme is one picture")
	case o.RPS < 1 || o.Seeds < 1 || o.N < 1 || !(o.Capacity > 0):
		return fmt.Errorf("-rps, -seeds, -n and -capacity must be above 0")
	}
	return o.Validate()
}

func drawCover(ctx context.Context, c *console, file string, o report.Options) error {
	pic, err := report.Cover(ctx, o)
	if err != nil {
		return err
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if strings.HasSuffix(file, ".svg") {
		err = pic.WriteSVG(f)
	} else {
		err = pic.WritePNG(f, report.CoverDPI)
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		fmt.Fprintln(c.out, file)
	}
	return err
}

// list is what is between the commas.
func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}
