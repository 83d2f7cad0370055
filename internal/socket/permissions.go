package socket

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// ParseMode reads permissions.
func ParseMode(given string) (fs.FileMode, error) {
	mode, err := strconv.ParseUint(given, 8, 32)
	if err != nil || mode == 0 || mode > 0o777 {
		return 0, fmt.Errorf("%q is not an octal mode such as 0660", given)
	}
	return fs.FileMode(mode), nil
}

// ParseOwner reads a user and a group, nil for none. Names need files that an empty image
// does not have.
func ParseOwner(given string) (*Owner, error) {
	if given == "" {
		return nil, nil
	}
	user, group, _ := strings.Cut(given, ":")
	uid, userErr := strconv.ParseUint(user, 10, 31)
	gid, groupErr := strconv.ParseUint(group, 10, 31)
	if userErr != nil || groupErr != nil {
		return nil, fmt.Errorf("%q is not UID:GID, two numbers", given)
	}
	return &Owner{UID: int(uid), GID: int(gid)}, nil
}
