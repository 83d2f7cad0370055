package span

import (
	"reflect"
	"testing"
)

// A field of the common origin has the value of both origins if they agree, and otherwise the value of
// neither.
func TestCommonOrigin_TrueOfBoth(t *testing.T) {
	var same Origin
	fields := reflect.ValueOf(&same).Elem()
	for i := range fields.NumField() {
		fields.Field(i).SetString("same")
	}
	if same.Common(same) != same {
		t.Errorf("an origin has %+v in common with itself", same.Common(same))
	}
	for i := range fields.NumField() {
		name, other, want := fields.Type().Field(i).Name, same, same
		reflect.ValueOf(&other).Elem().Field(i).SetString("other")
		blocked := ""
		if name == "Service" || name == "Env" || name == "Version" {
			blocked = Blocked
		}
		reflect.ValueOf(&want).Elem().Field(i).SetString(blocked)
		if got := same.Common(other); got != want || got.Common(same) != want || got.Common(other) != want {
			t.Errorf("where %s differs they have %+v in common, want %+v", name, got, want)
		}
	}
}
