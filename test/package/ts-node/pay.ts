import { payOne } from './pay-one';

void payOne();
