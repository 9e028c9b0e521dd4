package articles

import (
	"context"
	"fmt"
	"strconv"

	"github.com/redial-go/redial/bench/articles/contention"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/internal/pick"
	"github.com/redial-go/redial/bench/internal/policy"
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
	var choices []policy.Choice
	policy.Flag(f, &choices, "", "how the clients wait; default: the article's five, from 5 or 10 ms to 2 s", policy.Rules())
	o.runs = 100
	f.Count(&o.runs, 1, "reps", "runs of which each line is the mean")
	f.Seed(&o.seed)
	f.Check(func() error {
		o.policies = contention.Policies()
		if choices != nil {
			o.policies = pick.Each(choices, func(c policy.Choice) contention.Policy { return contention.Policy{Name: c.String(), Policy: c.New()} })
		}
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
	return c.Each(ctx, "simulate", len(o.sizes)*len(o.policies), 1, func(i int) error {
		n, p := o.sizes[i/len(o.policies)], o.policies[i%len(o.policies)]
		y, err := contention.Mean(ctx, p.Policy, n, o.runs, o.seed)
		if err == nil {
			done := fmt.Sprintf("%.0f", y.Time.Seconds()*1000)
			if y.GaveUp > 0 { // it was never all done
				done = "-"
			}
			fmt.Fprintf(c.Out, "n=%d policy=%s time_ms=%s calls=%.1f gave_up=%.1f reps=%d\n", n, p.Name, done, y.Calls, y.GaveUp, o.runs)
		}
		return err
	})
}
