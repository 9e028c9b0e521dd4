package report

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/bench/articles/contention"
	"github.com/redial-go/redial/bench/articles/queueing"
	"github.com/redial-go/redial/bench/articles/storm"
	"github.com/redial-go/redial/bench/articles/tiers"
	"github.com/redial-go/redial/bench/internal/chart"
)

func TestStrategiesOfOnePictureCanBeToldApart(t *testing.T) {
	pictures := map[string][]string{"herd": compared, "cover": coverClients}
	for _, s := range slices.Concat(queueing.Scenarios(), queueing.MoreScenarios()) {
		for _, y := range s.Strategies {
			pictures[s.Name] = append(pictures[s.Name], y.Name)
		}
	}
	for _, s := range tiers.Scenarios() {
		for _, y := range s.Strategies {
			pictures[s.Name] = append(pictures[s.Name], y.Name)
		}
	}
	for _, p := range contention.Policies() {
		pictures["aws"] = append(pictures["aws"], p.Name)
	}
	for _, c := range storm.Clients() {
		pictures["storm"] = append(pictures["storm"], c.String())
	}
	for picture, names := range pictures {
		looks := map[string]string{}
		for _, name := range names {
			s := styleOf(name)
			require.False(t, s.Color == chart.Grey && len(s.Dash) == len(chart.Dots) && s.Dash[0] == chart.Dots[0], "%s has no style", name)
			look := fmt.Sprint(s.Color, s.Dash)
			require.Empty(t, looks[look], "%s: %s looks the same", picture, name)
			looks[look] = name
		}
	}
}

func TestAStrategyOfNobodyHasAStyleToo(t *testing.T) {
	require.Equal(t, chart.Style{Name: "mine", Color: chart.Grey, Dash: chart.Dots}, styleOf("mine"))
}

func TestEachScenarioHasATitle(t *testing.T) {
	all := slices.Concat(queueing.Scenarios(), queueing.MoreScenarios())
	for _, s := range all {
		require.NotEmpty(t, s.Title, s.Name)
	}
	for _, s := range tiers.Scenarios() {
		require.NotEmpty(t, s.Title, s.Name)
	}
}

func TestFileNamesHaveNothingOdd(t *testing.T) {
	require.Equal(t, "a_b_cb_threshold_10_fail-rate_20", fileName("A b/cb_threshold=10%/fail-rate=20%")[:len("a_b_cb_threshold_10_fail-rate_20")])
	require.Regexp(t, `^[a-z0-9_-]+$`, fileName("../É x%y"))
}
