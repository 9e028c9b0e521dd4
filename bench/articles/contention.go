package articles

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redial-go/redial/bench/articles/contention"
	"github.com/redial-go/redial/bench/internal/cli"
)

// contend is "bench sim -model aws".
type contend struct {
	sizes    []int
	policies []contention.Policy
	runs     int
	seed     uint64
}

func (o *contend) Flags(f *cli.Flags) {
	sizes := f.String("n", "100", "how many clients: numbers separated by commas, or all for 10, 20 ... 190")
	cli.Choose(f, &o.policies, "policy", "none,exponential,equal,full,decorrelated", "the policies to simulate", contention.Find)
	o.runs = 100
	f.Count(&o.runs, 1, "reps", "runs of which each line is the mean")
	f.Uint64Var(&o.seed, "seed", 1, "seed of the first run; the next runs count up")
	f.Check(func() error {
		if *sizes == "all" {
			for n := 10; n <= 190; n += 10 {
				o.sizes = append(o.sizes, n)
			}
			return nil
		}
		for _, word := range cli.List(*sizes) {
			n, err := strconv.Atoi(word)
			if err != nil || n < 1 {
				return fmt.Errorf("want numbers of clients as -n, not %q", word)
			}
			o.sizes = append(o.sizes, n)
		}
		return nil
	})
}

func (o *contend) Run(ctx context.Context, c *cli.Console) error {
	progress := cli.NewProgress(c, "simulate", len(o.sizes)*len(o.policies))
	defer progress.End()
	for _, n := range o.sizes {
		for _, p := range o.policies {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			y, err := contention.Mean(p.Policy, n, o.runs, o.seed)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.Out, "n=%d policy=%s time_ms=%.0f calls=%.1f reps=%d\n", n, p.Name, y.Time.Seconds()*1000, y.Calls, o.runs)
			progress.Add(1)
		}
	}
	return nil
}
