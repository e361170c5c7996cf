export default class Journey { run() { return 1; } }
