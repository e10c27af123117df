// The player as an anywidget, which takes its entry points from the default export and warns of any other.

import { render } from "./widget.js";

export default { render };
