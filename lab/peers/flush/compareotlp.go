package main

import "fmt"

// compareOTLP makes the requests of one flush on each side, and returns an error if they
// differ: our data must be unchanged by the Collector's exporter, and the connector must have
// the same number of spans and the same total duration in each series.
func compareOTLP(w *otlpWork) error {
	ours := w.ours()()
	for i, theirs := range w.encoded(ours)() {
		want, got := written(ours[i]), written(theirs)
		if want != got {
			return fmt.Errorf("the Collector's exporter makes other data of ours: %d bytes as JSON, want "+
				"%d, or others", len(got), len(want))
		}
	}
	want, err := seriesOf(ours)
	if err != nil {
		return fmt.Errorf("decode our request: %w", err)
	}
	connector, err := w.connector()
	if err != nil {
		return err
	}
	got, err := seriesOf(connector())
	if err != nil {
		return fmt.Errorf("decode the connector's request: %w", err)
	}
	if len(got) != len(want) {
		return fmt.Errorf("%d series of ours, %d of the connector", len(want), len(got))
	}
	for name, counted := range want {
		if !got[name].isLike(counted) {
			return fmt.Errorf("series %q counts %+v here, %+v in the connector", name, counted, got[name])
		}
	}
	return nil
}
