package meter_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/redial-go/redial/reconnect"
	"github.com/redial-go/redial/reconnect/backoff"
	"github.com/redial-go/redial/reconnect/internal/meter"
)

// Each instrument can be handed to a library as it is.
func TestInstrumentsAreWellFormed(t *testing.T) {
	name := regexp.MustCompile(`^[a-z]+([._][a-z]+)*$`)
	seen := map[string]bool{}
	for _, i := range meter.Instruments() {
		require.Regexp(t, name, i.Name)
		require.False(t, seen[i.Name], i.Name)
		seen[i.Name] = true
		for _, other := range meter.Instruments() {
			require.False(t, strings.HasPrefix(other.Name, i.Name+"."), "%s is a namespace of %s", i.Name, other.Name)
		}
		require.Regexp(t, `^[A-Z].*\.$`, i.Help, i.Name)
		require.LessOrEqual(t, len(i.Labels), len(meter.Values{}), i.Name)
		require.Equal(t, i.Kind == meter.Histogram, len(i.Buckets) > 0, i.Name)
		require.True(t, slices.IsSorted(i.Buckets), i.Name)
		time := i.Kind == meter.Histogram || i.Kind == meter.Gauge
		require.Equal(t, time, i.Unit == "s", i.Name)
		for _, v := range i.Zero {
			for j, l := range i.Labels {
				require.Contains(t, l.Values, v[j], i.Name)
			}
		}
	}
}

// The closed sets are those of package reconnect.
func TestTheValuesOfLabelsAreThoseOfTheLibrary(t *testing.T) {
	for _, i := range meter.Instruments() {
		for _, l := range i.Labels {
			switch l.Name {
			case "state":
				for s := reconnect.StateConnecting; s < reconnect.StateClosed; s++ {
					require.Equal(t, s.String(), l.Values[s])
				}
				require.Equal(t, []string{"at_gate", "ended"}, l.Values[reconnect.StateClosed:])
			case "reason":
				for r := backoff.ReasonOther; r <= backoff.ReasonLogins; r++ {
					require.Equal(t, r.String(), l.Values[r])
				}
			}
		}
	}
}

// The functions are those that the documentation of Overdue.What names.
func TestTheFunctionsAreThoseOfOverdue(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../trace.go", nil, parser.ParseComments)
	require.NoError(t, err)
	var want []string
	ast.Inspect(file, func(n ast.Node) bool {
		if f, ok := n.(*ast.Field); ok && len(f.Names) == 1 && f.Names[0].Name == "What" {
			for _, m := range regexp.MustCompile(`"([^"]+)"`).FindAllStringSubmatch(f.Doc.Text()+f.Comment.Text(), -1) {
				what := strings.ReplaceAll(m[1], "\n", " ")
				switch {
				case strings.HasPrefix(what, "Trace."):
					what = "a hook"
				case strings.HasPrefix(what, "Layer."):
					what = "a layer"
				}
				if !slices.Contains(want, what) {
					want = append(want, what)
				}
			}
		}
		return true
	})
	require.Contains(t, want, "dial")
	for _, i := range meter.Instruments() {
		if i.Name == "overdue" {
			require.Equal(t, append(want, meter.Other), i.Labels[0].Values)
		}
	}
}
